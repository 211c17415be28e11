"""Outputs that would write over what a dataset of the workspace reads.

Templates are compared first, which is cheap and finds almost nothing. Where two may meet, the resolver says for every
period of the calendars which places it really reads.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from os.path import normpath, realpath
from pathlib import Path

from clew.deferred import dataclass
from clew.definitions import (
    DatabaseDatasource,
    Dataset,
    FilesDatasource,
    PathStrategy,
    Period,
    Resolver,
    WorkspaceDefinitions,
)
from clew.definitions.references import is_url
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.plan.catalogue import use_of_table
from clew.plan.datasets import DatasetUse
from clew.plan.operations import Destination, OutputStep
from clew.plan.plan import Plan
from clew.plan.resolution import fill_template, resolve

_PLACEHOLDER = re.compile(r"\{\w+\}")
_VERSIONED = frozenset({"delta", "iceberg"})
_WILD = re.compile(r"[*?\[]")
_HINT = "choose another destination; to hand rows to other projects, use `register_as_dataset`"

Place = tuple[str, ...]
"""A path or table, piece by piece; pieces of places that are read may have wildcards."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """A dataset and one of the resolvers that may find its data."""

    use: DatasetUse
    resolver: Resolver


def sources_written(reads: "Reads", plan: Plan) -> Iterator[Diagnostic]:
    """Every output of a plan that would write to a place that a dataset of the workspace reads."""
    for step in plan.outputs:
        template = reads.place(step.destination, step.destination.path or step.destination.table or "")
        if template is None:
            continue
        suspects = reads.suspects(template)
        places = (reads.place(step.destination, _filled(step, plan, period)) for period in reads.periods if suspects)
        for place in dict.fromkeys(places):
            found = reads.reader(place, step, suspects) if place is not None else None
            if found is not None:
                yield clash(step, step.destination.path or step.destination.table or "", found)
                break


def clash(step: OutputStep, where: str, dataset: str) -> Diagnostic:
    """That an output would write over the data of a dataset."""
    problem = f'the output to "{where}" would write over data that the dataset "{dataset}" reads'
    if step.place is None:
        return OUTPUT_CONFLICT.anywhere(problem=problem, hint=_HINT)
    return OUTPUT_CONFLICT.at(step.place, problem=problem, hint=_HINT)


class Reads:
    """All places that the datasets of a workspace read, whatever the period."""

    def __init__(self, workspace: WorkspaceDefinitions) -> None:
        self._workspace = workspace
        self._today = datetime.now(UTC).date()
        self._readers = tuple(_readers(workspace))
        self._known = dict[tuple[str, str], frozenset[tuple[Place, str]]]()
        self._folders = dict[str, str]()
        """Roots of datasources without links, so that two ways to one place are the same place."""

    @property
    def periods(self) -> Sequence[Period]:
        """The periods that runs can be for."""
        return self._workspace.periods.periods

    def place(self, destination: Destination, name: str) -> Place | None:
        """Where an output goes; None where that cannot be told."""
        if destination.datasource_id is None:
            return self._path(".", name)
        return self._place(destination.datasource_id, name, is_table=destination.table is not None)

    @staticmethod
    def local_place(path: Path) -> Place:
        """A place by its path on this machine, which has no links."""
        return tuple(str(path).split("/"))

    def suspects(self, template: Place) -> "tuple[_Reader, ...]":
        """The readers that may read a place whose placeholders are not filled in."""
        wild = tuple(_PLACEHOLDER.sub("*", piece) for piece in template)
        return tuple(
            reader for reader in self._readers if any(_may_meet(wild, other) for other in self._templates(reader))
        )

    def reader(self, place: Place, step: OutputStep, among: "Iterable[_Reader] | None" = None) -> str | None:
        """A dataset that reads a place which a step writes to."""
        for reader in self.suspects(place) if among is None else among:
            for other, format_ in self._places(reader):
                if not _keeps_versions(step, format_) and _meets(place, other, mode=step.mode):
                    return reader.use.dataset_id
        return None

    def _templates(self, reader: _Reader) -> Iterator[Place]:
        for rule in reader.resolver.rules:
            strategy = rule.strategy
            is_path = isinstance(strategy, PathStrategy)
            written = strategy.path if isinstance(strategy, PathStrategy) else strategy.table
            filled = written.replace("{table}", reader.use.table).replace("{dataset}", reader.use.dataset_id)
            place = self._place(strategy.datasource_id, _PLACEHOLDER.sub("*", filled), is_table=not is_path)
            if place is not None:
                yield place

    def _places(self, reader: _Reader) -> frozenset[tuple[Place, str]]:
        """Every place that a resolver names for a dataset, in any period, and its format."""
        key = (reader.use.dataset_id, reader.resolver.id)
        if key not in self._known:
            self._known[key] = frozenset(self._resolved(reader))
        return self._known[key]

    def _resolved(self, reader: _Reader) -> Iterator[tuple[Place, str]]:
        periods = self._workspace.periods
        for period in periods.periods:
            try:
                sources = resolve(reader.use, reader.resolver, period, periods, today=self._today)
            except UserError:
                continue
            for source in sources:
                place = self._place(source.datasource_id, source.location, is_table=source.kind == "table")
                if place is not None:
                    yield place, source.format

    def _place(self, datasource_id: str, name: str, *, is_table: bool) -> Place | None:
        datasource = self._workspace.datasource(datasource_id)
        if is_table and isinstance(datasource, DatabaseDatasource):
            schema = datasource.options.schema or ""
            return ("table:", datasource.options.url, f"{schema}.{name}".removeprefix("."))
        if not is_table and isinstance(datasource, FilesDatasource):
            return self._path(datasource.options.root, name)
        return None

    def _path(self, root: str, name: str) -> Place:
        if is_url(root) and not root.startswith("file:"):
            return tuple(f"{root.rstrip('/')}/{name}".split("/"))
        if root not in self._folders:
            self._folders[root] = realpath(self._workspace.root / re.sub("^file:/+", "/", root))
        return tuple(normpath(f"{self._folders[root]}/{name}").split("/"))


def _readers(workspace: WorkspaceDefinitions) -> Iterator[_Reader]:
    """Every dataset with the resolver that it names, or the default, and with those that projects choose for it."""
    default = workspace.default_resolver
    for dataset in workspace.datasets:
        resolver = workspace.resolver(dataset.resolver_id) if dataset.resolver_id is not None else default
        if resolver is not None:
            yield _Reader(_use(dataset), resolver)
    for project in workspace.projects:
        for name, chosen in project.resolver_overrides.items():
            resolver, declared = workspace.resolver(chosen), workspace.dataset(name)
            if resolver is not None:
                yield _Reader(_use(declared) if declared is not None else _registered(name), resolver)


def _use(dataset: Dataset) -> DatasetUse:
    return use_of_table(dataset.id, dataset.name, dataset.main_table, dataset.natural_key)


def _registered(name: str) -> DatasetUse:
    """A dataset that no file defines; it may have any table."""
    return DatasetUse(name, name, "*", "none", ())


def _keeps_versions(step: OutputStep, format_: str) -> bool:
    """Whether a version of the very table is read that is written to: a commit leaves earlier versions alone."""
    return format_ in _VERSIONED and step.destination.format == format_


def _filled(step: OutputStep, plan: Plan, period: Period) -> str:
    return fill_template(step.destination.path or step.destination.table or "", plan.input, period)


def _may_meet(written: Place, read: Place) -> bool:
    """Whether one may be the other, or lie in it; both may have wildcards."""
    if "**" in read:
        read = read[: read.index("**")]
    return all(_may_be_one(a, b) for a, b in zip(written, read, strict=False))


def _may_be_one(a: str, b: str) -> bool:
    if a == b:
        return True
    heads, tails = (_WILD.split(a)[0], _WILD.split(b)[0]), (_WILD.split(a)[-1], _WILD.split(b)[-1])
    if not (_WILD.search(a) or _WILD.search(b)):
        return False
    begin_alike = heads[0].startswith(heads[1]) or heads[1].startswith(heads[0])
    if "[" in a + b:
        return begin_alike
    return begin_alike and (tails[0].endswith(tails[1]) or tails[1].endswith(tails[0]))


def _meets(written: Place, read: Place, *, mode: str) -> bool:
    """Whether writing to a place changes what is read from another.

    What a folder holds is read with it, except names that start with a dot or an underscore. Replacing a folder deletes
    what is in it; adding files to one changes only what reads the files of that folder.
    """
    if "**" in read:
        folders = read.index("**")
        return _meets(written[:folders], read[:folders], mode=mode)
    if not all(fnmatchcase(a, b) for a, b in zip(written, read, strict=False)):
        return False
    below_read, below_written = written[len(read) :], read[len(written) :]
    if below_written and mode == "append":
        return len(below_written) == 1 and _WILD.search(below_written[0]) is not None
    return not any(piece.startswith((".", "_")) for piece in below_read)
