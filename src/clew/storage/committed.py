"""Descriptions of parts: written after the last file, read before the first.

A part counts once an event of its run names its description; without such an event it does not exist.
"""

import json
from collections.abc import Sequence

from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.trace import DAMAGED_TRACE
from clew.events.artifacts import key_of_part, part_artifact, parts_among
from clew.events.snapshot import RunSnapshot
from clew.events.values import ArtifactRef
from clew.storage.layout import PART_FILE, description_key, folder_of, part_folder
from clew.storage.parts import Part, part_from_json, part_to_json
from clew.storage.root import Draft, StorageKey, StorageRoot

# Writing


def publish_part(draft: Draft, part: Part) -> None:
    """Make the files of a part visible, with their description."""
    draft.publish(PART_FILE, _as_bytes(part))


def describe_part(root: StorageRoot, folder: StorageKey, part: Part) -> None:
    """Write the description of a part, in place of an earlier one if there is one."""
    root.write(description_key(folder), _as_bytes(part))


def artifact_of_part(root: StorageRoot, run_id: str, part: Part) -> ArtifactRef:
    """The reference to a part of a run as it is described now.

    A retry may read an input again, which is then described again; what steps have written stays as it is.
    """
    key = description_key(part_folder(run_id, part.kind, part.name))
    digest = None if part.kind == "input" else root.sha256(key)
    return part_artifact(key, digest, root.stat(key).size)


def _as_bytes(part: Part) -> bytes:
    return json.dumps(part_to_json(part), sort_keys=True).encode()


# Reading


def described_part(root: StorageRoot, folder: StorageKey) -> Part | None:
    """The part in a folder, None where none was finished there."""
    try:
        return described_at(root, description_key(folder))
    except FileNotFoundError:
        return None


def described_at(root: StorageRoot, key: StorageKey) -> Part:
    """The part whose description has this key. OSError where it cannot be read."""
    return part_from_json(json.loads(root.read_bytes(key)), key)


def committed_part(root: StorageRoot, artifact: ArtifactRef) -> Part:
    """The part that an event names. UserError where its description is gone or damaged."""
    key = key_of_part(artifact)
    try:
        data = json.loads(root.read_bytes(key))
    except OSError as error:
        raise UserError(DAMAGED_TRACE.anywhere(file=key, problem=_missing(error))) from error
    except ValueError as error:
        raise UserError(DAMAGED_TRACE.anywhere(file=key, problem=f"it is not JSON: {error}")) from error
    return part_from_json(data, key)


def committed_parts(root: StorageRoot, snapshot: RunSnapshot) -> tuple[Part, ...]:
    """The parts that the events of a run name, read from their descriptions. UserError names one that is damaged."""
    return tuple(committed_part(root, artifact) for artifact in parts_among(snapshot.artifacts))


def readable_parts(root: StorageRoot, snapshot: RunSnapshot) -> tuple[list[Part], list[Diagnostic]]:
    """The parts whose descriptions can be read, and what is wrong with the others."""
    parts, problems = list[Part](), list[Diagnostic]()
    for artifact in parts_among(snapshot.artifacts):
        try:
            parts.append(committed_part(root, artifact))
        except UserError as error:
            problems += error.diagnostics
    return parts, problems


def input_part(root: StorageRoot, artifacts: Sequence[ArtifactRef], name: str) -> Part | None:
    """The description of a pinned dataset among what the loading step left behind."""
    for artifact in parts_among(artifacts):
        key = key_of_part(artifact)
        if folder_of(key).rpartition("/")[2] == name and root.exists(key):
            return committed_part(root, artifact)
    return None


def _missing(error: OSError) -> str:
    return "it is gone" if isinstance(error, FileNotFoundError) else error.strerror or str(error)


def sources_of(part: Part) -> str:
    """Where a pinned dataset was read from: the file, or how many there were, or the version that Clew keeps."""
    details = part.details or {}
    if details.get("format") == "managed":
        return f"dataset {details.get('dataset')} v{details.get('version')}"
    sources = str(details.get("sources") or "").split("; ")
    return sources[0] if len(sources) == 1 else f"{details.get('format')}, {len(sources)} files"
