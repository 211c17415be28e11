"""Paths and templates in definitions: which placeholders exist, and that a path stays in its folder."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from clew.diagnostics import did_you_mean

PLACEHOLDERS = ("period", "table", "dataset", "level", "start_date", "end_date", "year", "quarter", "month")
"""What a path or table template may name in braces."""

_BRACES = re.compile(r"\{([^{}]*)\}|[{}]")

_FORMAT_OF_SUFFIX = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}


def climbs_out(path: str) -> bool:
    """Whether `..` leads above the folder that a relative path starts in."""
    depth = 0
    for part in re.split(r"[/\\]", path):
        if part == "..":
            depth -= 1
        elif part not in {"", "."}:
            depth += 1
        if depth < 0:
            return True
    return False


def unknown_placeholders(template: str) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, problem and hint of each brace in a template that is not a known placeholder."""
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    for match in _BRACES.finditer(template):
        name = match[1]
        if name is None:
            yield match.start(), match.end(), f'"{match[0]}" has no counterpart', f"the placeholders are {known}"
        elif name not in PLACEHOLDERS:
            hint = did_you_mean(name, PLACEHOLDERS) or "correct the name"
            yield match.start(), match.end(), f"no placeholder {{{name}}}; the placeholders are {known}", hint


def format_of_path(path: str) -> str:
    """The file format that the suffix of a path stands for; Parquet where it says nothing."""
    return _FORMAT_OF_SUFFIX.get(PurePosixPath(path).suffix.lower(), "parquet")
