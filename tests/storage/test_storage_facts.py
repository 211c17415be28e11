"""Facts about storage stand once: names of folders and files, addresses, digests, and how things are removed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import clew

SOURCE = Path(clew.__file__).parent
HOMES = ("storage/", "events/artifacts.py", "events/values.py")
"""Where these facts are at home."""

NAMES = {"trace-part", "dataset-version", "part.json", "manifest.json", "removals.jsonl", "load", "salt"}
"""Texts that occur nowhere else."""
BEGINNINGS = ("storage:", "runs/", "plans/", "datasets/", "captures/")
FOLDERS = {"runs", "plans", "datasets", "captures"}
"""Folders that no other code joins with a slash."""
CALLS = {"fsync", "file_digest", "hardlink_to", "rmtree"}
"""Functions that no other code calls."""

NO_STORAGE = {
    "server": "addresses of pages",
    "api/remote.py": "addresses of a server",
    "cli/remote_run.py": "addresses of a server",
    "plan/workspace.py": "a folder of definitions, in a hint",
    "cli/commands/datasets.py": "a folder of definitions, in a hint",
    "definitions/checks.py": "where a check looks, as users write it",
    "cli/views/checks.py": "the same",
}
"""What has such texts for other reasons."""
OUTSIDE_THE_ROOT = {
    "api/checkpoint_delivery.py": "how far buses have got with them",
    "engine/output/places.py": "outputs lie where users want them",
    "runs/seal_keys.py": "the key is no data",
    "sample/__init__.py": "a new workspace",
}
"""What writes and removes files that are not managed."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(HOMES):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def texts(tree: ast.Module) -> Iterator[str]:
    """The texts of a module, docstrings and other texts on their own left out."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def joined_by_a_slash(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield from (
                side.value
                for side in (node.left, node.right)
                if isinstance(side, ast.Constant) and isinstance(side.value, str)
            )


def test_names_and_addresses_of_managed_things_stand_in_storage_alone() -> None:
    found = {
        (name, text)
        for name, tree in modules()
        if not name.startswith(tuple(NO_STORAGE))
        for text in texts(tree)
        if text in NAMES or text.startswith(BEGINNINGS)
    }
    assert found == set()


def test_nobody_else_puts_paths_of_managed_things_together() -> None:
    found = {(name, text) for name, tree in modules() for text in joined_by_a_slash(tree) if text in FOLDERS}
    assert found == set()


def test_digests_syncing_links_and_removals_are_done_in_storage() -> None:
    found = {
        (name, node.func.attr)
        for name, tree in modules()
        if name not in OUTSIDE_THE_ROOT
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS
    }
    assert found == set()


def test_the_bits_of_ordinals_and_trace_ids_are_counted_once() -> None:
    counted = {"ROW_INDEX_BITS", "SEQUENCE_BITS", "NODE_ID_BITS", "TIMESTAMP_BITS"}
    assigned = [
        (path.relative_to(SOURCE).as_posix(), target.id)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.lstrip("_") in counted
    ]
    assert sorted(assigned) == [
        ("storage/row_identity.py", "ROW_INDEX_BITS"),
        ("storage/trace_id_bits.py", "NODE_ID_BITS"),
        ("storage/trace_id_bits.py", "SEQUENCE_BITS"),
        ("storage/trace_id_bits.py", "TIMESTAMP_BITS"),
    ]
