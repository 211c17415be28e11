"""What is still needed: versions of datasets, and the runs that they come from.

A version is needed where it is the newest, where a project asks for it by number, and where a run has read it that is
kept. A run is needed where a needed version has rows of it, since an explanation would follow them there. Each of the
two can need the other, so both grow until nothing is added.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from clew.app.running.pins import VersionKey
from clew.runs.registry import DatasetVersion


@dataclass(frozen=True, slots=True)
class Needs:
    """Who needs what, in a few words for each."""

    versions: Mapping[VersionKey, str]
    runs: Mapping[str, str]


def needs_of(
    versions: Collection[DatasetVersion],
    pinned: Collection[VersionKey],
    reads: Mapping[str, Collection[VersionKey]],
    kept: Iterable[str],
) -> Needs:
    """What is needed, where `reads` are the versions that each run has read and `kept` the runs that stay anyway."""
    found = {(version.dataset, version.version): version for version in versions}
    needed = dict[VersionKey, str]()
    for dataset in {version.dataset for version in versions}:
        newest = max(version.version for version in versions if version.dataset == dataset)
        needed[dataset, newest] = "it is the newest version"
    needed |= {key: "a project asks for this version" for key in pinned if key in found and key not in needed}
    runs = dict[str, str]()
    waiting = list(kept)
    while True:
        for run_id in waiting:
            for key in reads.get(run_id, ()):
                needed.setdefault(key, f"run {run_id[:8]} has read it")
        waiting = []
        for (dataset, number), version in found.items():
            if (dataset, number) in needed:
                for file in version.files:
                    if file.run_id not in runs:
                        runs[file.run_id] = f"dataset {dataset} v{number} has rows of it"
                        waiting.append(file.run_id)
        if not waiting:
            return Needs(needed, runs)
