"""Writes what a run leaves on disk, out of an interpretation: a second, small implementation of the layout."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clew.lang.types import Kind, Type, parse_type
from clew.plan.datasets import DatasetUse
from clew.plan.operations import AggregateStep, AppendStep, DeleteStep, Step, UpdateStep
from clew.storage.parts import Part, PartFile, TracedStep
from clew.storage.roots import storage_at
from clew.trace.reader import RunTrace
from tests.trace.recorded_interpretation import Recorded

RUN = "019a7c00-0000-7000-8000-000000000001"
TODAY = date(2026, 1, 31)
_SIMPLE = {
    Kind.STRING: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
SYSTEM = {"_period": parse_type("string"), "_labels": parse_type("string"), "_deleted": parse_type("boolean")}


def stored_type(type_: Type) -> pa.DataType:
    return pa.decimal128(type_.precision, type_.scale) if type_.kind is Kind.DECIMAL else _SIMPLE[type_.kind]


@dataclass(frozen=True, slots=True)
class Style:
    """How the engine happened to write: none of it may matter to a reader."""

    files: int = 1
    row_group: int = 100_000
    longest_part: int = 6
    keeps_unchanged: bool = False
    states: frozenset[int] = frozenset()
    """The parts, by number, that hold the state."""
    shuffle: int | None = None
    full_masks: bool = False
    """Whether masks also have the changes that values tell, as they all had before layout 3."""


@dataclass(slots=True)
class Writer:
    root: Path
    recorded: Recorded
    style: Style = field(default_factory=Style)
    run_id: str = RUN
    parts: list[Part] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    """Of the rows of the interpretation, by index."""
    next_file: int = 0
    origins: dict[str, list[int]] = field(default_factory=dict)
    """Of datasets that another run registered: the ordinals that their rows had there."""

    def write(self) -> RunTrace:
        plan = self.recorded.plan
        for use in _uses(plan.input, plan.steps):
            self._input(use)
        narrow = list[UpdateStep | DeleteStep]()
        for step in plan.steps:
            if isinstance(step, UpdateStep | DeleteStep):
                narrow.append(step)
                continue
            self._changes(narrow)
            narrow = []
            if isinstance(step, AggregateStep | AppendStep):
                self._created(step)
        self._changes(narrow)
        return self.trace()

    def trace(self) -> RunTrace:
        return RunTrace(
            root=storage_at(self.root),
            run_id=self.run_id,
            plan=self.recorded.plan,
            parts=tuple(self.parts),
            period=self.recorded.period,
            today=self.recorded.first_day,
        )

    def _input(self, use: DatasetUse) -> None:
        rows = self.recorded.loaded(use)
        types = {column.name: column.type for column in use.columns} | {"_period": SYSTEM["_period"]}
        columns = {name: [row.get(name) for row in rows] for name in types}
        files = [f"{use.table}.csv"] * len(rows)
        table = _table(columns, types).append_column("__source_file", pa.array(files, pa.string()))
        table = table.append_column("__source_line", pa.array(range(2, len(rows) + 2), pa.int64()))
        if use.key in self.origins:
            table = table.append_column("__origin", pa.array(self.origins[use.key], pa.int64()))
        names = tuple((name, str(type_)) for name, type_ in types.items())
        details: dict[str, str | int | None] = {"dataset": use.dataset_id, "version": 1, "sources": f"{use.table}.csv"}
        numbered = self._files(f"input/{use.key}", table, numbered=True)
        if use.key == self.recorded.plan.input.key:
            self.ordinals += _ordinals(numbered)
        self.parts.append(Part("input", use.key, numbered, names, details=details))

    def _created(self, step: AggregateStep | AppendStep) -> None:
        rows = self.recorded.states[step.seq][len(self.ordinals) :]
        types = {column.name: column.type for column in self.recorded.plan.columns_after(step.seq)}
        types |= {name: SYSTEM[name] for name in ("_period", "_labels")}
        table = _table({name: [row[name] for row in rows] for name in types}, types)
        if isinstance(step, AppendStep) and step.group_by is None:
            lines = [line + 2 for line in self.recorded.source_lines[step.seq]]
            file = pa.array([f"{step.source.table}.csv"] * len(lines), pa.string())
            table = table.append_column("__source_file", file).append_column(
                "__source_line", pa.array(lines, pa.int64())
            )
        if isinstance(step, AppendStep):
            source = {column.name: column.type for column in step.source.columns}
            for position, name in step.narrowed_keys:
                values = pa.array([group[name] for group in self.recorded.groups[step.seq]], stored_type(source[name]))
                table = table.append_column(f"__key{position}", values)
        files = self._files(f"created/{step.seq}", table, numbered=True)
        self.ordinals += _ordinals(files)
        names = tuple((column.name, str(column.type)) for column in self.recorded.plan.columns_after(step.seq))
        self.parts.append(Part("created", str(step.seq), files, names, seq=step.seq))

    def _changes(self, steps: Sequence[UpdateStep | DeleteStep]) -> None:
        for start in range(0, len(steps), self.style.longest_part):
            self._changes_part(steps[start : start + self.style.longest_part])

    def _changes_part(self, steps: Sequence[UpdateStep | DeleteStep]) -> None:
        number = sum(part.kind == "changes" for part in self.parts)
        holds_state = number in self.style.states
        columns: dict[str, list[object]] = {"__ordinal": list(self.ordinals)}
        arrow: dict[str, pa.DataType] = {"__ordinal": pa.int64()}
        for step in steps:
            self._step(step, columns, arrow)
        kept = [
            index
            for index in range(len(self.ordinals))
            if self.style.keeps_unchanged
            or holds_state
            or any(values[index] is not None for name, values in columns.items() if name != "__ordinal")
        ]
        types = {column.name: column.type for column in self.recorded.plan.columns_after(steps[-1].seq)}
        if holds_state:
            for name, type_ in (types | SYSTEM).items():
                columns[name] = [row[name] for row in self.recorded.states[steps[-1].seq]]
                arrow[name] = stored_type(type_)
        if self.style.shuffle is not None:
            random.Random(self.style.shuffle).shuffle(kept)
        arrays = [pa.array([columns[name][index] for index in kept], type_) for name, type_ in arrow.items()]
        name = f"{steps[0].seq}-{steps[-1].seq}"
        files = self._files(f"changes/{name}", pa.Table.from_arrays(arrays, names=list(arrow)), numbered=False)
        traced = tuple(
            TracedStep(step.seq, "update", tuple(each.column for each in step.assignments))
            if isinstance(step, UpdateStep)
            else TracedStep(step.seq, "delete", ())
            for step in steps
        )
        named = tuple((name, str(type_)) for name, type_ in types.items()) if holds_state else ()
        self.parts.append(Part("changes", name, files, named, seq=steps[-1].seq, steps=traced))

    def _step(self, step: Step, columns: dict[str, list[object]], arrow: dict[str, pa.DataType]) -> None:
        before, after = self.recorded.before(step), self.recorded.states[step.seq]
        if isinstance(step, DeleteStep):
            gone = [new["_deleted"] and not old["_deleted"] for old, new in zip(before, after, strict=True)]
            kept = self.recorded.kept.get(step.seq)
            named = {index: self.ordinals[other] for index, other in (kept or {}).items()}
            columns[f"__s{step.seq}_m"] = [named.get(index, 1) if each else None for index, each in enumerate(gone)]
            arrow[f"__s{step.seq}_m"] = pa.int64()
            return
        assert isinstance(step, UpdateStep)
        words = max(1, -(-len(step.assignments) // 62))
        masks = [[0] * len(before) for _ in range(words)]
        types = {column.name: column.type for column in self.recorded.plan.columns_after(step.seq)} | SYSTEM
        for position, assignment in enumerate(step.assignments):
            values = list[object]()
            for index, (old, new) in enumerate(zip(before, after, strict=True)):
                is_same = _same(old.get(assignment.column), new[assignment.column])
                values.append(None if is_same else new[assignment.column])
                in_mask = not is_same and (self.style.full_masks or values[-1] is None)
                masks[position // 62][index] |= in_mask << position % 62
            columns[f"__s{step.seq}_a{position}"] = values
            arrow[f"__s{step.seq}_a{position}"] = stored_type(types[assignment.column])
        for word, mask in enumerate(masks):
            name = f"__s{step.seq}_m" + (str(word) if word else "")
            columns[name] = [each or None for each in mask]
            arrow[name] = pa.int64()

    def _files(self, name: str, table: pa.Table, *, numbered: bool) -> tuple[PartFile, ...]:
        folder = self.root / "runs" / self.run_id / name
        folder.mkdir(parents=True)
        size = max(1, -(-table.num_rows // self.style.files))
        files = list[PartFile]()
        for index, start in enumerate(range(0, table.num_rows, size)):
            path = folder / f"part-{index:05}.parquet"
            pq.write_table(
                table.slice(start, size),
                path,
                row_group_size=self.style.row_group,
                compression="zstd",
                version="2.6",
                write_page_checksum=True,
            )
            content = path.read_bytes()
            files.append(
                PartFile(
                    path=str(path.relative_to(self.root)),
                    rows=min(size, table.num_rows - start),
                    size=len(content),
                    sha256=hashlib.sha256(content).hexdigest(),
                    ordinal=self.next_file if numbered else None,
                )
            )
            self.next_file += numbered
        return tuple(files)


def _same(old: object, new: object) -> bool:
    return (old is None and new is None) or (old is not None and new is not None and old == new)


def _table(columns: Mapping[str, Sequence[object]], types: dict[str, Type]) -> pa.Table:
    arrays = [pa.array(columns[name], stored_type(type_)) for name, type_ in types.items()]
    return pa.Table.from_arrays(arrays, names=list(types))


def _ordinals(files: Sequence[PartFile]) -> list[int]:
    return [(file.ordinal << 40) + position for file in files for position in range(file.rows)]  # type: ignore[operator]


def _uses(source: DatasetUse, steps: Sequence[Step]) -> list[DatasetUse]:
    uses = {source.key: source}
    for step in steps:
        if isinstance(step, UpdateStep):
            uses.update({join.dataset.key: join.dataset for join in step.joins})
        elif isinstance(step, AppendStep):
            uses[step.source.key] = step.source
    return list(uses.values())
