"""How the events of a run refer to what it wrote: parts, outputs, versions of datasets."""

from collections.abc import Sequence

from clew.events.values import ArtifactRef

PART_KIND, OUTPUT_KIND, DATASET_KIND = "trace-part", "output", "dataset-version"
_PART_DEPTH = 4
"""`runs/<run>/<kind>/<name>`."""
_STORAGE, _DATASET, _TABLE, _PATH = "storage:", "dataset:", "table:", "path:"


def part_artifact(key: str, sha256: str | None, size: int) -> ArtifactRef:
    """The reference to a part, by the key of its description below the storage root."""
    return ArtifactRef(f"{_STORAGE}{key}", PART_KIND, sha256, size)


def key_of_part(artifact: ArtifactRef) -> str:
    """The key of the description that the reference to a part names."""
    return artifact.uri.removeprefix(_STORAGE)


def parts_among(artifacts: Sequence[ArtifactRef]) -> list[ArtifactRef]:
    """Those that refer to parts. A part that a later attempt has written anew counts as it was written last."""
    latest = dict[str, ArtifactRef]()
    for artifact in artifacts:
        if artifact.kind == PART_KIND:
            latest[_part_of(artifact)] = artifact
    return list(latest.values())


def _part_of(artifact: ArtifactRef) -> str:
    """Run, kind and name of a part: what its description has in front of the attempt that wrote it."""
    return "/".join(key_of_part(artifact).split("/")[:_PART_DEPTH])


def dataset_artifact(dataset: str, version: int, sha256: str | None = None, size: int | None = None) -> ArtifactRef:
    """The reference to a version of a dataset, with one digest of its files."""
    return ArtifactRef(f"{_DATASET}{dataset}@{version}", DATASET_KIND, sha256, size)


def version_among(artifacts: Sequence[ArtifactRef]) -> tuple[str, int] | None:
    """The dataset and the version that the first reference to one names; None if there is none."""
    found = next((artifact for artifact in artifacts if artifact.kind == DATASET_KIND), None)
    if found is None:
        return None
    name, _, version = found.uri.removeprefix(_DATASET).rpartition("@")
    return name, int(version)


def output_artifact(
    *, table: str | None, path: str | None, sha256: str | None = None, size: int | None = None
) -> ArtifactRef:
    """The reference to an output in a table, or else in files, with one digest of what was written."""
    return ArtifactRef(f"{_TABLE}{table}" if table else f"{_PATH}{path}", OUTPUT_KIND, sha256, size)


def output_among(artifacts: Sequence[ArtifactRef]) -> tuple[str, str] | None:
    """`table` or `path`, and which, of the first reference to an output; None if there is none."""
    found = next((artifact for artifact in artifacts if artifact.kind == OUTPUT_KIND), None)
    if found is None:
        return None
    kind, _, where = found.uri.partition(":")
    return kind, where
