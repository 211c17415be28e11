"""Descriptions of parts: written after the last file, read before the first.

A part counts when an event of its run names its description, with its digest; what no event names counts for nothing.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress

from clew.deferred import dataclass
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.trace import DAMAGED_TRACE
from clew.diagnostics.file_system import OutOfReach, unavailable
from clew.events.artifacts import key_of_part, part_artifact, parts_among
from clew.events.snapshot import RunSnapshot
from clew.events.values import ArtifactRef
from clew.storage.drafts import Draft
from clew.storage.layout import PART_FILE, description_key, is_input
from clew.storage.parts import Part, part_from_json, part_to_json
from clew.storage.root import StorageKey, StorageRoot

# Writing


@dataclass(frozen=True, slots=True)
class DescribedPart:
    """A part whose description is written, and the reference by which an event names it."""

    part: Part
    artifact: ArtifactRef


def publish_part(draft: Draft, part: Part) -> DescribedPart:
    """Describe the files of a part. From then on an event may name it."""
    description = _as_bytes(part)
    key = draft.publish(PART_FILE, description)
    return DescribedPart(part, part_artifact(key, hashlib.sha256(description).hexdigest(), len(description)))


def describe_once(root: StorageRoot, folder: StorageKey, part: Part) -> Part:
    """Describe what follows from a run that has ended, under a name that all who work it out share.

    The first description stays: the rows of all are the same. UserError where it cannot be read.

    Where a store cannot refuse the second of two writers, the description may be that of the other by now. One that has
    slept right before it wrote may even find that its files were collected meanwhile: then nothing is described, and
    the work can be done again.
    """
    key = description_key(folder)
    with suppress(FileExistsError):
        if not root.write_new(key, _as_bytes(part)):
            return part
    described = described_at(root, key)
    if described == part and not all(root.exists(file.path) for file in part.files):
        root.remove(key)
        raise UserError(DAMAGED_TRACE.anywhere(file=key, problem="its files were collected before they were named"))
    return described


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
        description = _description(root, key, artifact)
        data = json.loads(description)
    except OutOfReach as error:
        raise unavailable(error) from error
    except OSError as error:
        raise UserError(DAMAGED_TRACE.anywhere(file=key, problem=_missing(error))) from error
    except ValueError as error:
        raise UserError(DAMAGED_TRACE.anywhere(file=key, problem=f"it is not JSON: {error}")) from error
    part = part_from_json(data, key)
    if artifact.sha256 is not None and hashlib.sha256(description).hexdigest() != artifact.sha256:
        problem = "it is not what the event of the run names: its digest differs"
        raise UserError(DAMAGED_TRACE.anywhere(file=key, problem=problem))
    return part


def _description(root: StorageRoot, key: StorageKey, artifact: ArtifactRef) -> bytes:
    if root.copies is None or artifact.sha256 is None:
        return root.read_bytes(key)
    return root.copies.through(f"description {artifact.sha256}", lambda: root.read_bytes(key))


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
        if is_input(key, name) and root.exists(key):
            return committed_part(root, artifact)
    return None


def _missing(error: OSError) -> str:
    return "it is gone" if isinstance(error, FileNotFoundError) else error.strerror or str(error)


def sources_of(part: Part) -> str:
    """Where a pinned dataset was read from: the file, or how many there were, the version that Clew keeps, or a table.

    Of a table it also says why its rows were copied, or how long its version can be relied on.
    """
    details = part.details or {}
    if details.get("format") == "managed":
        version = f"dataset {details.get('dataset')} v{details.get('version')}"
        tables = f": {details['sources']}" if details.get("sources") else ""
        return f"{version}{tables}{f'; {kept}' if (kept := details.get('retention')) else ''}"
    sources = str(details.get("sources") or "").split("; ")
    if details.get("pinned") is not None:
        kept = f", copied: {details['reason']}" if details.get("reason") else ""
        warning = f"; {details['retention']}" if details.get("retention") else ""
        return f"{', '.join(sources)}{kept}{warning}"
    return sources[0] if len(sources) == 1 else f"{details.get('format')}, {len(sources)} files"
