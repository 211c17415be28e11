"""The lineage of the rows of runs: which runs a trace was in, what it came from, and what was made from it.

Reading it does not need Spark. The register of blocks names the run that minted an id. From there, ids continue in the
files of registered datasets and in the runs that pinned them, so only those runs are read, however many there are.

Explanations cross projects the same way: from a row of a registered dataset to the run that registered it.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import field
from typing import Protocol

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.explain.pinned import UpstreamByOrigin
from clew.explain.row_links import RowLinks, row_parts
from clew.explain.table_crossings import TableCrossings, authors_of
from clew.plan.operations import OutputStep
from clew.runs.environment import RunEnvironment
from clew.runs.registry import DatasetFile
from clew.runs.request import RunFilter
from clew.runs.stores import RunState
from clew.storage.inventory import expanded_links
from clew.storage.layout import dataset_of_file
from clew.storage.parts import CARRIED, SOURCE_FILE, SOURCE_LINE, Part, PartFile
from clew.storage.plans import kept_plan
from clew.storage.root import StorageRoot
from clew.storage.row_identity import RowIds, place_of
from clew.trace.history import source_of
from clew.trace.reader import RunTrace
from clew.trace.records import LINE, Source
from clew.tracelink import LineageReader, Link, TracedFrame, TracePlace
from clew.tracelink.stores import TraceLinkStores

_PAGE = 500
"""Runs that are looked at in one question to the state store."""


class TracedState(RunState, Protocol):
    """What the lineage of runs needs from a state store."""

    @property
    def tracelink(self) -> TraceLinkStores:
        """Node ids, blocks of trace ids, frames and links."""
        ...


def run_lineage(state: TracedState, environment: RunEnvironment, trace_of: Callable[[str], RunTrace]) -> LineageReader:
    """The lineage of all rows of all runs of an environment that have ended.

    `trace_of` opens the trace of a run by its id; UserError if it is gone, or not visible to the caller.
    """
    return RunLineage(state, environment, LinkFiles(environment.storage_root), trace_of)


@dataclass(frozen=True, slots=True)
class LinkFiles:
    """Links that were worked out after their run."""

    root: StorageRoot

    def of_step(self, run_id: str, seq: int) -> Part | None:
        """The links of a step."""
        return expanded_links(self.root, run_id, seq)


@dataclass(slots=True)
class RunLineage:
    """Answers for the rows of runs. Deleted runs and unfinished runs have no answers."""

    state: TracedState
    environment: RunEnvironment
    files: LinkFiles
    trace_of: Callable[[str], RunTrace]
    _links: dict[str, RowLinks | None] = field(default_factory=dict)
    _reruns: dict[str, list[str]] = field(default_factory=dict)
    _readers: dict[str, list[tuple[str, frozenset[str]]]] = field(default_factory=dict)
    _plans: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def _tables(self) -> TableCrossings:
        return TableCrossings(self.state, self._trace_of, self._readers_of)

    def parents(self, trace_ids: Collection[int]) -> Iterator[Link]:
        """The links in which one of these is the trace."""
        for links, ids in self._minting(trace_ids):
            yield from links.parents(ids)
            yield from self._tables.parents(links.trace, ids)

    def children(self, trace_ids: Collection[int]) -> Iterator[Link]:
        """The links in which one of these is the parent."""
        for links, ids in self._holding(trace_ids):
            yield from links.children(ids)
            yield from self._tables.children(links.trace, ids)

    def frames(self, trace_ids: Collection[int]) -> Iterator[TracedFrame]:
        """The frames of these traces: a row where it was loaded, appended, summed up, and written for a dataset."""
        for links, ids in self._holding(trace_ids):
            trace, epoch = links.trace, links.trace.row_ids.epoch
            for part in row_parts(trace):
                for trace_id, ordinal in trace.ids.rows_of(part, ids):
                    yield _frame(trace_id, part.seq, epoch, ordinal)
            for seq, part in self._registered(trace):
                rows = trace.ids.rows_of(part, ids)
                origins = trace.ids.origins_of(part, [ordinal for _, ordinal in rows])
                for trace_id, place in rows:
                    if place in origins:
                        yield _frame(trace_id, seq, epoch, origins[place])

    def places(self, trace_ids: Collection[int]) -> Iterator[TracePlace]:
        """Where these traces begin: the row of the run that minted them, with file and line where it was loaded."""
        for links, ids in self._minting(trace_ids):
            for part in row_parts(links.trace):
                yield from _places(links.trace, part, ids)

    # Runs

    def _minting(self, trace_ids: Collection[int]) -> Iterator[tuple[RowLinks, set[int]]]:
        """The runs that minted ids, with those that each did."""
        by_run = dict[str, set[int]]()
        for block in self.state.tracelink.blocks.blocks_of(trace_ids):
            ids = by_run.setdefault(block.run_id, set())
            ids.update(trace_id for trace_id in trace_ids if trace_id in block.block)
        for run_id, ids in by_run.items():
            links = self._open(run_id)
            if links is not None:
                yield links, ids

    def _holding(self, trace_ids: Collection[int]) -> Iterator[tuple[RowLinks, set[int]]]:
        """The runs that have rows with these ids: those that minted them, and those that took them over."""
        waiting = list(self._minting(trace_ids))
        seen = {links.trace.run_id: set(ids) for links, ids in waiting}
        while waiting:
            links, ids = waiting.pop(0)
            yield links, ids
            for run_id, taken in (*self._taken_over(links.trace, ids), *self._repeated(links.trace, ids)):
                new = taken - seen.get(run_id, set())
                reader = self._open(run_id) if new else None
                if reader is not None:
                    seen.setdefault(run_id, set()).update(new)
                    waiting.append((reader, new))

    def _repeated(self, trace: RunTrace, ids: Collection[int]) -> Iterator[tuple[str, set[int]]]:
        """The reruns of the project that have taken over rows with these ids."""
        for run_id in self._reruns_of(trace.plan.name):
            links = self._open(run_id) if run_id != trace.run_id else None
            if links is not None:
                taken = {each for part in row_parts(links.trace) for each, _ in links.trace.ids.rows_of(part, ids)}
                if taken:
                    yield run_id, taken

    def _reruns_of(self, project: str) -> list[str]:
        if project not in self._reruns:
            which, last = RunFilter(environment_id=self.environment.name, project_id=project), None
            found = self._reruns[project] = []
            while page := self.state.stores.catalog.runs(which, limit=_PAGE, before=last):
                found += [run.run_id for run in page if run.request.rerun is not None]
                last = page[-1]
        return self._reruns[project]

    def _taken_over(self, trace: RunTrace, ids: Collection[int]) -> Iterator[tuple[str, set[int]]]:
        """The runs that have pinned what a run registered, with the ids that they got by that."""
        for _, part in self._registered(trace):
            paths = dict[str, set[int]]()
            for trace_id, place in trace.ids.rows_of(part, ids):
                paths.setdefault(part.files[place_of(place)[0]].path, set()).add(trace_id)
            for run_id, pinned in self._readers_of(part.name) if paths else ():
                taken = {trace_id for path, found in paths.items() if path in pinned for trace_id in found}
                if taken:
                    yield run_id, taken

    def _registered(self, trace: RunTrace) -> Iterator[tuple[int, Part]]:
        """What a run has kept for datasets: output step and rows, which carry trace ids."""
        for step in trace.plan.steps:
            if not isinstance(step, OutputStep) or step.registers is None:
                continue
            found = {
                file.path: file
                for version in self.state.datasets.versions(step.registers)
                for file in version.files
                if (file.run_id, file.seq) == (trace.run_id, step.seq)
            }
            files = tuple(
                PartFile(file.path, file.rows, file.size, file.sha256, ordinal=index, ids=CARRIED)
                for index, file in enumerate(found.values())
            )
            if files:
                yield step.seq, Part("input", step.registers, files, (), step.seq)

    def _trace_of(self, run_id: str) -> RunTrace | None:
        links = self._open(run_id)
        return None if links is None else links.trace

    def _readers_of(self, dataset: str) -> list[tuple[str, frozenset[str]]]:
        """The runs that have pinned a dataset, in whichever version, with the files of it that they did."""
        if dataset not in self._readers:
            self._readers[dataset] = list(self._find_readers(dataset))
        return self._readers[dataset]

    def _find_readers(self, dataset: str) -> Iterator[tuple[str, frozenset[str]]]:
        which, last = RunFilter(environment_id=self.environment.name), None
        while page := self.state.stores.catalog.runs(which, limit=_PAGE, before=last):
            last = page[-1]
            for run in page:
                if dataset not in self._read_by(run.request.plan.digest):
                    continue
                links = self._open(run.run_id)
                if links is not None:
                    inputs = [part for part in links.trace.run.parts if part.kind == "input"]
                    pinned = [part for part in inputs if _dataset_of(part) == dataset]
                    yield run.run_id, frozenset(file.path for part in pinned for file in part.files)

    def _read_by(self, digest: str | None) -> frozenset[str]:
        """The datasets that a plan reads. Runs have few plans between them."""
        if digest is None:
            return frozenset()
        if digest not in self._plans:
            try:
                plan = kept_plan(self.environment.storage_root, digest)
                self._plans[digest] = frozenset(use.dataset_id for use in plan.datasets_read)
            except UserError:
                self._plans[digest] = frozenset()
        return self._plans[digest]

    def _open(self, run_id: str) -> RowLinks | None:
        if run_id not in self._links:
            try:
                links = RowLinks(self.trace_of(run_id), self.files)
                self._links[run_id] = links if row_parts(links.trace) else None
            except UserError:
                self._links[run_id] = None
        return self._links[run_id]


def _dataset_of(part: Part) -> str:
    return part.name.partition("@")[0]


def _frame(trace_id: int, seq: int, epoch: int, ordinal: int) -> TracedFrame:
    return TracedFrame(trace_id=trace_id, stream_id=seq, epoch=epoch, seq=ordinal, stage_id=seq)


def _places(trace: RunTrace, part: Part, ids: Collection[int]) -> Iterator[TracePlace]:
    rows = trace.ids.rows_of(part, ids)
    if not rows:
        return
    step = trace.run.step(part.seq) if part.kind == "created" else None
    sources = _sources(trace, part, [ordinal for _, ordinal in rows]) if step is None else {}
    for trace_id, ordinal in rows:
        if step is None and ordinal not in sources:
            continue
        source = sources.get(ordinal)
        is_row = step is not None or part.name == trace.run.loaded.name
        yield TracePlace(
            trace_id=trace_id,
            run_id=trace.run_id,
            project=trace.plan.name,
            period=trace.period,
            operation_seq=part.seq,
            step_name=step.name if step is not None else None,
            row_id=trace.row_ids.row_id(ordinal) if is_row else None,
            dataset=source.dataset if source else None,
            file=source.file if source else None,
            line=source.line if source else None,
            unit=source.unit if source and source.unit != LINE else None,
        )


def _sources(trace: RunTrace, part: Part, ordinals: list[int]) -> dict[int, Source]:
    """Where loaded rows stood. Rows that did not count for the run are left out."""
    use = next(use for use in trace.plan.datasets_becoming_rows if trace.run.pinned(use).name == part.name)
    cells = trace.pinned(use).values(ordinals, [SOURCE_FILE, SOURCE_LINE])
    return {ordinal: source_of(part, row[SOURCE_FILE], row[SOURCE_LINE]) for ordinal, row in cells}


@dataclass(frozen=True, slots=True)
class DatasetWriters:
    """Finds the run that wrote a file of a registered dataset."""

    state: RunState
    trace_of: Callable[[str], RunTrace]
    """Opens the trace of a run by its id. UserError if it is gone, or not visible to the caller."""

    def writer_of(self, path: str) -> tuple[RunTrace, int] | None:
        """The trace of the run that wrote a file, and the output step; None if that run is gone."""
        file = self.file_of(path)
        try:
            return None if file is None else (self.trace_of(file.run_id), file.seq)
        except UserError:
            return None

    def file_of(self, path: str) -> DatasetFile | None:
        """What is on record about a file of a registered dataset; None if no version has it."""
        dataset = dataset_of_file(path)
        versions = self.state.datasets.versions(dataset) if dataset else ()
        return next((file for version in versions for file in version.files if file.path == path), None)

    def author_of(self, dataset: str, row_id: str) -> tuple[RunTrace, int] | None:
        """The trace of the run that wrote a row to a registered table, and the output step; None if it is gone."""
        for run_id, seq in authors_of(self.state, dataset):
            if RowIds(run_id).ordinal(row_id) is not None:
                try:
                    return self.trace_of(run_id), seq
                except UserError:
                    return None
        return None


def upstream_runs(state: RunState, trace_of: Callable[[str], RunTrace]) -> UpstreamByOrigin:
    """The way to the runs that registered what a run reads. `trace_of` opens the trace of a run by its id."""
    writers = DatasetWriters(state, trace_of)
    return UpstreamByOrigin(writers.writer_of, trace_of, writers.author_of)
