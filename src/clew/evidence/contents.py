"""What is in an evidence pack: events, plans and descriptions of runs, explanations, and the input rows behind them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from datetime import date
from typing import Protocol

from clew.deferred import dataclass
from clew.events.codec import canonical_json
from clew.explain.tree import (
    Cause,
    Contributor,
    Explanation,
    Input,
    JoinedRow,
    Loaded,
    Summarised,
    Updated,
)
from clew.explain.views import as_json
from clew.lang.typed import Value
from clew.storage.parts import Part, PartFile
from clew.trace.json_values import json_state
from clew.trace.records import RowValues, Source

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvidence:
    """What a run did: everything that the pack says about it apart from rows."""

    run_id: str
    plan_digest: str
    plan: bytes
    table: str
    """What expressions call the working dataset."""
    today: date
    events: Sequence[Mapping[str, object]]
    unsealed: int
    """How many of the first events are from before histories were sealed."""
    ledger: Sequence[Mapping[str, object]]
    descriptions: Mapping[str, bytes]
    """Descriptions of its parts, by the reference in its events."""
    parts: Sequence[Part]
    facts: Json
    """The form of `clew show --json`."""

    @property
    def folder(self) -> str:
        """Where its members lie."""
        return f"history/{self.run_id}"

    def members(self) -> dict[str, bytes]:
        """Its files in the pack."""
        found = {
            f"plan/{self.plan_digest}.json": self.plan,
            f"{self.folder}/run.json": pretty(self.facts),
            f"{self.folder}/events.jsonl": _lines(self.events),
            f"{self.folder}/ledger.jsonl": _lines(self.ledger),
        }
        return found | {self._member(number): content for number, content in enumerate(self.descriptions.values(), 1)}

    def index(self) -> Json:
        """Where the verifier finds them."""
        return {
            "plan": f"plan/{self.plan_digest}.json",
            "plan_digest": self.plan_digest,
            "table": self.table,
            "today": self.today.isoformat(),
            "events": f"{self.folder}/events.jsonl",
            "unsealed": self.unsealed,
            "ledger": f"{self.folder}/ledger.jsonl",
            "parts": {uri: self._member(number) for number, uri in enumerate(self.descriptions, 1)},
        }

    def _member(self, number: int) -> str:
        return f"{self.folder}/parts/{number:03}.json"

    def sources(self) -> Iterator[Json]:
        """The files and tables that it read, with their digests; for a dataset that Clew keeps, its own files."""
        for part in self.parts:
            if part.kind != "input":
                continue
            known: Json = {"run_id": self.run_id, "dataset": part.name}
            yield from ({**known, **asdict(source)} for source in part.sources)
            if not part.sources:
                yield from (
                    {**known, "name": file.shown, "size": file.size, "digest": f"sha256:{file.sha256}"}
                    for file in part.files
                    if file.sha256
                )

    def digest_of(self, source: Source | None) -> str | None:
        """The digest of the file that a row stood in."""
        if source is None or source.file is None:
            return None
        named = (read for part in self.parts if part.kind == "input" for read in part.sources)
        return next((read.digest for read in named if read.name == source.file), None)


@dataclass(frozen=True, slots=True)
class ExplainedPair:
    """An explanation as it is, and as the maker of the pack may see it."""

    told: Explanation
    seen: Explanation

    def to_json(self) -> Json:
        """The form of `clew explain --json`, with a mark where something is left out or masked."""
        document = as_json(self.seen)
        _mark(document, as_json(self.told))
        return document


def _mark(seen: object, told: object) -> None:
    """Mark the values whose own value, or one that it was calculated from, is not shown as it is."""
    if isinstance(seen, dict) and isinstance(told, dict):
        if "cause" in seen and (seen["value"], _values(seen["cause"])) != (told["value"], _values(told["cause"])):
            seen["withheld"] = True
        for name in seen.keys() & told.keys():
            _mark(seen[name], told[name])
    elif isinstance(seen, list) and isinstance(told, list):
        for one, other in zip(seen, told, strict=False):
            _mark(one, other)


def _values(cause: Mapping[str, object]) -> list[object]:
    """The values that an expression read."""
    parents = cause.get("parents")
    rows = [*(parents["contributors"] if isinstance(parents, dict) else [])]
    for window in cause.get("windows") or ():  # type: ignore[attr-defined]
        rows += window["parents"]["contributors"]
    inputs = [cause.get("inputs") or [], *([row["inputs"] for row in rows])]
    return [len(rows), *([each["name"], each["value"]] for several in inputs for each in several)]


@dataclass(slots=True)
class _Rows:
    """The input rows that explanations rest on."""

    runs: Mapping[str, RunEvidence]
    loaded: dict[tuple[str, str], Source] = field(default_factory=dict)
    others: dict[str, Json] = field(default_factory=dict)

    def follow(self, told: Explanation) -> None:
        """Everything below a value."""
        cause = told.cause
        if isinstance(cause, Loaded):
            self.loaded[told.run_id, told.row_id] = cause.source
        for each in getattr(cause, "inputs", ()):
            self._input(told.run_id, each)
        for parent in _contributors(cause):
            self._contributor(told.run_id, parent)
        upstream = getattr(cause, "upstream", None)
        if upstream is not None:
            self.follow(upstream)

    def _input(self, run_id: str, each: Input) -> None:
        if isinstance(each.explanation, JoinedRow):
            joined = each.explanation
            if joined.row is not None:
                self._other(run_id, joined.dataset, joined.source, joined.row)
        elif each.explanation is not None:
            self.follow(each.explanation)
        if each.upstream is not None:
            self.follow(each.upstream)

    def _contributor(self, run_id: str, parent: Contributor) -> None:
        if parent.row_id is None:
            dataset = parent.source.dataset if parent.source is not None else ""
            values: dict[str, Value] = {each.name.partition(".")[2]: each.value for each in parent.inputs}
            self._other(run_id, dataset, parent.source, values)
        for each in parent.inputs:
            self._input(run_id, each)

    def _other(self, run_id: str, dataset: str, source: Source | None, values: RowValues) -> None:
        row: Json = {
            "run_id": run_id,
            "row_id": None,
            "dataset": dataset,
            "source": None if source is None else asdict(source),
            "digest": self.runs[run_id].digest_of(source),
            "values": json_state(values),
        }
        self.others.setdefault(canonical_json(row), row)


class StatesOfRows(Protocol):
    """Reads rows of runs as they were loaded, as the maker of the pack may see them."""

    def states(self, run_id: str, row_ids: Iterable[str]) -> Mapping[str, RowValues]:
        """The values of rows by row id."""
        ...

    def file(self, run_id: str, row_id: str) -> PartFile | None:
        """The file that Clew keeps a loaded row in."""
        ...


def input_rows(
    explanations: Iterable[Explanation], runs: Mapping[str, RunEvidence], states: StatesOfRows
) -> list[Json]:
    """The input rows behind explanations: where each stood, and its values."""
    found = _Rows(runs)
    for told in explanations:
        found.follow(told)
    values = {
        run_id: states.states(run_id, [row for owner, row in found.loaded if owner == run_id])
        for run_id in dict.fromkeys(owner for owner, _ in found.loaded)
    }
    loaded: list[Json] = [
        {
            "run_id": run_id,
            "row_id": row_id,
            "dataset": source.dataset,
            "source": asdict(source),
            "digest": runs[run_id].digest_of(source),
            "kept_in": _kept_in(states.file(run_id, row_id)),
            "values": json_state(values[run_id].get(row_id)),
        }
        for (run_id, row_id), source in found.loaded.items()
    ]
    return [*loaded, *found.others.values()]


def _kept_in(file: PartFile | None) -> Json | None:
    return None if file is None or not file.sha256 else {"path": file.path, "sha256": file.sha256}


def _contributors(cause: Cause) -> Iterator[Contributor]:
    """The rows behind a value."""
    if isinstance(cause, Summarised):
        yield from cause.parents.contributors
    if isinstance(cause, Updated):
        for window in cause.windows:
            yield from window.parents.contributors


def runs_in(told: Explanation) -> Iterator[str]:
    """The runs that an explanation passes through."""
    yield told.run_id
    cause = told.cause
    inputs = [*getattr(cause, "inputs", ()), *(each for parent in _contributors(cause) for each in parent.inputs)]
    for each in inputs:
        if isinstance(each.explanation, Explanation):
            yield from runs_in(each.explanation)
        if each.upstream is not None:
            yield from runs_in(each.upstream)
    upstream = getattr(cause, "upstream", None)
    if upstream is not None:
        yield from runs_in(upstream)


def pretty(document: object) -> bytes:
    """A JSON document that people can read."""
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, default=str) + "\n").encode()


def _lines(documents: Iterable[Mapping[str, object]]) -> bytes:
    return "".join(f"{canonical_json(document)}\n" for document in documents).encode()
