"""Whether what a run has read is still as it was: its files, and the registered datasets.

Only what is cheap to look at: sizes, times, and the content of small files. What was not looked at is said. Nothing is
loaded, no trace is opened, and no store or database outside of this machine is asked.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clew.deferred import dataclass
from clew.definitions import FilesDatasource, WorkspaceDefinitions
from clew.diagnostics import UserError
from clew.events.artifacts import parts_among
from clew.plan.datasets import DatasetUse
from clew.plan.local_files import local_files, local_folder
from clew.plan.plan import Plan
from clew.plan.resolution import resolve
from clew.runs.clock import utc_now
from clew.runs.datasets_now import resolved_now
from clew.storage.committed import committed_part
from clew.storage.local import sha256_of_file
from clew.storage.parts import Part, SourceRead

if TYPE_CHECKING:
    from clew.events.values import ArtifactRef
    from clew.storage.root import StorageRoot
    from clew.store.standing import NewestVersion

_LARGE = 16 << 20
"""Bytes from which the content of a file is not compared."""
_MOST_KEPT = 4096
_INPUTS = "/input/"
"""In the address of the description of a pinned dataset."""


@dataclass(frozen=True, slots=True)
class InputFacts:
    """What the record of a run says about a dataset that it read."""

    name: str
    """The key of the dataset in the plan."""
    dataset: str
    version: int | None
    """The version of a registered dataset; None for what a resolver found."""
    is_registered: bool
    periods: frozenset[str] | None
    """The periods whose rows count in a registered dataset; None for all."""
    digests: frozenset[str]
    """Of the files of a registered dataset."""
    sources: tuple[SourceRead, ...]
    """The files outside of Clew that it was read from."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that a run has read and that is not as it was."""

    subject: str
    """The dataset."""
    text: str


@dataclass(frozen=True, slots=True)
class InputChanges:
    """What has changed, and what was not looked at."""

    changed: tuple[Changed, ...] = ()
    unchecked: tuple[str, ...] = ()


@dataclass(eq=False)
class ReadInputs:
    """What runs have read, kept by the digest of the description, which never changes; and digests of source files."""

    _parts: "OrderedDict[str, InputFacts | None]" = field(default_factory=OrderedDict)
    _digests: "OrderedDict[tuple[str, int, int, int], str]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def facts(self, root: "StorageRoot", artifact: "ArtifactRef") -> InputFacts | None:
        """A pinned dataset; None for a part of another kind. UserError where the description cannot be read."""
        key = f"{artifact.uri} {artifact.sha256}"
        with self._lock:
            if key in self._parts:
                self._parts.move_to_end(key)
                return self._parts[key]
        part = committed_part(root, artifact)
        found = _facts(part) if part.kind == "input" else None
        with self._lock:
            self._parts[key] = found
            while len(self._parts) > _MOST_KEPT:
                self._parts.popitem(last=False)
        return found

    def digest(self, path: Path, size: int, mtime_ns: int, ctime_ns: int) -> str:
        """The digest of a file in this state."""
        key = (str(path), size, mtime_ns, ctime_ns)
        with self._lock:
            if key in self._digests:
                return self._digests[key]
        found = f"sha256:{sha256_of_file(path)}"
        with self._lock:
            self._digests[key] = found
            while len(self._digests) > _MOST_KEPT:
                self._digests.popitem(last=False)
        return found


def _facts(part: Part) -> InputFacts:
    details = part.details or {}
    version, periods = details.get("version"), details.get("periods")
    is_registered = details.get("format") == "managed"
    return InputFacts(
        name=part.name,
        dataset=str(details.get("dataset") or part.name.partition("@")[0]),
        version=version if isinstance(version, int) and is_registered else None,
        is_registered=is_registered,
        periods=frozenset(periods.split(", ")) if isinstance(periods, str) else None,
        digests=frozenset(file.sha256 for file in part.files) if is_registered else frozenset(),
        sources=part.sources,
    )


@dataclass(frozen=True, slots=True)
class InputsNow:
    """Compares what runs have read with what is there now."""

    workspace: WorkspaceDefinitions
    workspace_root: Path
    storage_root: "StorageRoot"
    newest: "Mapping[str, NewestVersion]"
    """The newest version of every registered dataset."""
    known: ReadInputs

    def look(self, plan: Plan, period: str, started: datetime, artifacts: "tuple[ArtifactRef, ...]") -> InputChanges:
        """What has changed of the inputs that the artifacts of a loading step name."""
        uses = {use.key: use for use in plan.datasets_read}
        changed, unchecked = list[Changed](), list[str]()
        for artifact in parts_among([each for each in artifacts if _INPUTS in each.uri]):
            try:
                facts = self.known.facts(self.storage_root, artifact)
            except UserError:
                unchecked.append("the record of an input cannot be read")
                continue
            if facts is None:
                continue
            use = uses.get(facts.name)
            try:
                problems = list(self._problems(plan, use, facts, period, started, unchecked.append))
            except (UserError, OSError) as error:
                unchecked.append(f"{facts.dataset}: {_said(error)}")
                continue
            changed += [Changed(facts.dataset, text) for text in problems]
        return InputChanges(tuple(changed), tuple(dict.fromkeys(unchecked)))

    def _problems(
        self,
        plan: Plan,
        use: DatasetUse | None,
        facts: InputFacts,
        period: str,
        started: datetime,
        skip: Callable[[str], None],
    ) -> Iterator[str]:
        if facts.is_registered:
            yield from self._of_registered(use, facts, period, skip)
        elif facts.sources and use is not None:
            yield from self._of_files(plan, use, facts, period, started, skip)
        else:
            skip(f"{facts.dataset}: no file is on record")

    def _of_registered(
        self, use: DatasetUse | None, facts: InputFacts, period: str, skip: Callable[[str], None]
    ) -> Iterator[str]:
        newest = self.newest.get(facts.dataset)
        if newest is None or newest.version == facts.version or (use is not None and use.pinned_version is not None):
            return
        if not newest.files:
            skip(f"{facts.dataset} is registered as a table")
            return
        above = {each.identifier for each in self.workspace.periods.ancestors(period)}
        other = [
            digest
            for digest, of in newest.files.values()
            if digest not in facts.digests and (facts.periods is None or of in facts.periods or of in above)
        ]
        if other or (facts.periods is None and facts.digests - {digest for digest, _ in newest.files.values()}):
            rows = "rows" if facts.periods is None else f"rows of {period}"
            yield f"version {newest.version} of {facts.dataset} has other {rows} than version {facts.version}"

    def _of_files(
        self,
        plan: Plan,
        use: DatasetUse,
        facts: InputFacts,
        period: str,
        started: datetime,
        skip: Callable[[str], None],
    ) -> Iterator[str]:
        folders, found, is_complete = self._files_now(plan, use, period)
        if not folders:
            skip(f"the files of {facts.dataset} are not on this machine")
            return
        read = {source.name: source for source in facts.sources}
        for name, source in read.items():
            path = found.get(name) or next((folder / name for folder in folders if (folder / name).is_file()), None)
            if path is None:
                yield f"{name} is gone"
                continue
            state = path.stat()
            written = max(state.st_mtime_ns, state.st_ctime_ns)
            if state.st_size != source.size:
                yield f"{name} has changed"
            elif written < started.timestamp() * 1e9 or source.digest is None:
                continue
            elif not source.digest.startswith("sha256:") or state.st_size > _LARGE:
                skip(f"{name} was written to again and is too large to compare here")
            elif self.known.digest(path, state.st_size, state.st_mtime_ns, state.st_ctime_ns) != source.digest:
                yield f"{name} has changed"
        if is_complete:
            for name in sorted(found.keys() - read.keys()):
                yield f"{name} is new"

    def _files_now(self, plan: Plan, use: DatasetUse, period: str) -> tuple[list[Path], dict[str, Path], bool]:
        """The folders of this machine that a dataset is read from, its files there, and whether these are all."""
        resolved = resolved_now(self.workspace, plan, use, ())
        run_period = self.workspace.periods.period(period)
        if resolved is None or run_period is None:
            return [], {}, False
        datasources = {name: each for each in self.workspace.datasources for name in (each.name, each.id)}
        sources = resolve(resolved.use, resolved.resolver, run_period, self.workspace.periods, today=utc_now().date())
        folders, found, is_complete = list[Path](), dict[str, Path](), True
        for source in sources:
            datasource = datasources.get(source.datasource_id)
            folder = (
                local_folder(datasource, self.workspace_root)
                if isinstance(datasource, FilesDatasource) and source.kind == "path"
                else None
            )
            if folder is None:
                is_complete = False
                continue
            folders.append(folder)
            found |= {file.shown: Path(file.path) for file in local_files(folder, source)}
        return folders, found, is_complete


def _said(error: UserError | OSError) -> str:
    if isinstance(error, UserError):
        return error.diagnostics[0].message
    return error.strerror or str(error)
