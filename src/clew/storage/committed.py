"""What the events of a run name in storage: its committed parts, read from their descriptions."""

import json
from collections.abc import Sequence
from pathlib import Path

from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.trace import DAMAGED_TRACE
from clew.events.snapshot import RunSnapshot
from clew.events.values import ArtifactRef
from clew.storage.parts import Part, part_from_json

PART_KIND, OUTPUT_KIND, DATASET_KIND = "trace-part", "output", "dataset-version"
LOAD_STEP = "load"


def committed_parts(root: Path, snapshot: RunSnapshot) -> tuple[Part, ...]:
    """The parts that the events of a run name, read from their descriptions. UserError names one that is damaged."""
    return tuple(_described(root, artifact) for artifact in snapshot.artifacts if artifact.kind == PART_KIND)


def readable_parts(root: Path, snapshot: RunSnapshot) -> tuple[list[Part], list[Diagnostic]]:
    """The parts whose descriptions can be read, and what is wrong with the others."""
    parts, problems = list[Part](), list[Diagnostic]()
    for artifact in snapshot.artifacts:
        if artifact.kind == PART_KIND:
            try:
                parts.append(_described(root, artifact))
            except UserError as error:
                problems += error.diagnostics
    return parts, problems


def input_part(root: Path, artifacts: Sequence[ArtifactRef], name: str) -> Part | None:
    """The description of a pinned dataset among what the loading step left behind."""
    for artifact in artifacts:
        path = root / _place(artifact)
        if artifact.kind == PART_KIND and path.parent.name == name and path.is_file():
            return _described(root, artifact)
    return None


def _described(root: Path, artifact: ArtifactRef) -> Part:
    place = _place(artifact)
    try:
        data = json.loads((root / place).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(DAMAGED_TRACE.anywhere(file=place, problem=_missing(error))) from error
    except ValueError as error:
        raise UserError(DAMAGED_TRACE.anywhere(file=place, problem=f"it is no JSON: {error}")) from error
    return part_from_json(data, place)


def _missing(error: OSError) -> str:
    return "it is gone" if isinstance(error, FileNotFoundError) else error.strerror or str(error)


def _place(artifact: ArtifactRef) -> str:
    return artifact.uri.removeprefix("storage:")


def sources_of(part: Part) -> str:
    """Where a pinned dataset was read from: the file, or how many there were, or the version that Clew keeps."""
    details = part.details or {}
    if details.get("format") == "managed":
        return f"dataset {details.get('dataset')} v{details.get('version')}"
    sources = str(details.get("sources") or "").split("; ")
    return sources[0] if len(sources) == 1 else f"{details.get('format')}, {len(sources)} files"
