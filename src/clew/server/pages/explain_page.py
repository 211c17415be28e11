"""Why a value is what it is, as a tree to unfold."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from clew.explain.outline import recomputed_text, shown
from clew.explain.tree import (
    Appended,
    Contributor,
    Decision,
    Deleted,
    Explanation,
    Input,
    JoinedRow,
    Loaded,
    Recomputed,
    StepRef,
    Summarised,
    Unset,
    Updated,
)
from clew.lang.typed import Value
from clew.server.pages import addresses, words
from clew.server.pages.substitution import Piece, with_values
from clew.server.pages.words import Cell
from clew.trace.records import Source

TOP = 5
_MORE = (5, 50, 500)
_BAR = 100


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Where a row stood outside Clew."""

    dataset: str
    version: int | None
    file: str | None
    line: int | None
    about: str | None


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression, with the values that went in, and whether it gives the same again."""

    text: str
    pieces: tuple[Piece, ...]
    outcome: Literal["equal", "differs", "not checked"]
    verdict: str


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a sum that a row brought in, and the length of its bar out of a hundred."""

    text: str
    length: float
    is_negative: bool


@dataclass(frozen=True, slots=True)
class Joined:
    """The row of another dataset that a step saw."""

    alias: str
    dataset: str
    on: str
    label: str | None
    source: SourceLine | None
    cells: tuple[tuple[str, Cell], ...]
    is_missing: bool
    is_first_of_several: bool


@dataclass(frozen=True, slots=True)
class InRun:
    """The run of another project in which the tree goes on."""

    run_id: str
    title: str
    address: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Rows behind a summary that are not shown."""

    count: int
    share: str | None
    """The part of a sum that they make up."""
    address: str | None
    offered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value in the tree and what is below it."""

    name: str | None
    """The column; None for a row that is counted and brings in no value of its own."""
    cell: Cell | None
    how: str
    step: StepRef | None = None
    row: str | None = None
    """What people call the row, where it is another one than above."""
    row_address: str | None = None
    address: str | None = None
    """The explanation of this value by itself."""
    formula: Formula | None = None
    source: SourceLine | None = None
    joined: Joined | None = None
    share: Share | None = None
    group: str | None = None
    decisions: tuple[tuple[str, str, str], ...] = ()
    """Conditions, what they were, and the values that made them so."""
    in_run: InRun | None = None
    children: tuple["Node", ...] = ()
    parents: tuple["Node", ...] = ()
    """The rows behind a summary, set as a list of their own with their shares."""
    rest: Rest | None = None
    is_source: bool = False
    """Whether the way ends here, in a source."""


@dataclass(frozen=True, slots=True)
class ExplainPage:
    """An explanation with what is around it."""

    run_id: str
    run_address: str
    run_title: str
    period: str
    row_id: str
    label: str
    column: str
    at: int
    root: Node
    row_address: str
    rows_address: str
    graph_address: str
    download_address: str
    json_address: str
    verdict: str
    is_verified: bool | None
    """Whether every expression gave the same again; None where there was none to calculate."""
    checked: int


@dataclass(frozen=True, slots=True)
class RunTitle:
    """What a run is called in a sentence."""

    title: str
    period: str

    def __str__(self) -> str:
        return f"{self.title}, {self.period}"


TitleOf = Callable[[str], RunTitle]
"""The title of a run by its id."""


def explain_page(explanation: Explanation, title_of: TitleOf, *, top: int) -> ExplainPage:
    """The page of an explanation."""
    drawn = _Tree(title_of, explanation, top)
    root = drawn.value(explanation)
    run_id, row_id, column, at = explanation.run_id, explanation.row_id, explanation.column, explanation.at
    title = title_of(run_id)
    outcomes = [node.formula.outcome for node in walk(root) if node.formula]
    return ExplainPage(
        run_id=run_id,
        run_address=addresses.run(run_id),
        run_title=title.title,
        period=title.period,
        row_id=row_id,
        label=words.row_name(explanation.label or row_id),
        column=column,
        at=at,
        root=root,
        row_address=addresses.row(run_id, row_id, at=at),
        rows_address=addresses.rows(run_id, at=at),
        graph_address=addresses.lineage(run=run_id, row=row_id, column=column, at=at),
        download_address=addresses.download(run_id, row_id, column, at=at, top=top),
        json_address=addresses.as_json(addresses.explanation(run_id, row_id, column, at=at, top=top)),
        verdict=_verdict(outcomes),
        is_verified=None if not outcomes else "differs" not in outcomes,
        checked=outcomes.count("equal"),
    )


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    for child in (*node.children, *node.parents):
        yield from walk(child)


def _verdict(outcomes: Sequence[str]) -> str:
    differing, unchecked = outcomes.count("differs"), outcomes.count("not checked")
    if differing:
        return f"{words.counted(differing, 'value')} on this page came out differently when calculated again"
    if not outcomes:
        return "nothing was calculated: the value was taken as it stood"
    rest = f"; {words.counted(unchecked, 'expression')} could not be checked" if unchecked else ""
    return f"{words.counted(outcomes.count('equal'), 'expression')} on this page calculated again: all equal{rest}"


@dataclass(frozen=True, slots=True)
class _Tree:
    title_of: TitleOf
    root: Explanation
    top: int

    def value(self, explanation: Explanation, name: str | None = None) -> Node:
        """A value and what is below it."""
        cause = explanation.cause
        about = _About(
            name or explanation.column,
            words.cell(explanation.value),
            addresses.explanation(explanation.run_id, explanation.row_id, explanation.column, at=explanation.at),
        )
        match cause:
            case Loaded():
                return self._loaded(cause, about)
            case Updated():
                return self._updated(cause, about, explanation.value)
            case Summarised():
                return self._summarised(cause, about, explanation)
            case Appended():
                return self._appended(cause, about, explanation.value)
            case Deleted():
                selector = "it takes every row" if cause.selector is None else f"by its selector {cause.selector}"
                return about.node(
                    how=f"deleted, {selector}", step=cause.step, decisions=tuple(map(_decision, cause.decisions))
                )
            case Unset():
                return about.node(how=cause.reason, is_source=True)

    def _loaded(self, cause: Loaded, about: "_About") -> Node:
        upstream = () if cause.upstream is None else (self._elsewhere(cause.upstream),)
        return about.node(how="loaded", source=source_line(cause.source), children=upstream, is_source=not upstream)

    def _updated(self, cause: Updated, about: "_About", value: Value) -> Node:
        used = {id(each.explanation) for each in cause.inputs}
        joins = (_join_node(join) for join in cause.joins if id(join) not in used)
        return about.node(
            how="set",
            step=cause.step,
            formula=_formula(cause.expression, cause.inputs, value, cause.recomputed),
            children=(*map(self._input, cause.inputs), *joins),
        )

    def _appended(self, cause: Appended, about: "_About", value: Value) -> Node:
        upstream = () if cause.upstream is None else (self._elsewhere(cause.upstream),)
        return about.node(
            how="appended",
            step=cause.step,
            formula=_formula(cause.expression, cause.inputs, value, cause.recomputed),
            source=source_line(cause.source) if cause.source else None,
            children=(*map(self._input, cause.inputs), *upstream),
        )

    def _summarised(self, cause: Summarised, about: "_About", explanation: Explanation) -> Node:
        largest = max((abs(each.share) for each in cause.parents.contributors if each.share is not None), default=None)
        rows = words.counted(cause.parents.count, "row")
        return about.node(
            how=f"summed up from {rows} of {cause.of}" if largest is not None else f"from {rows} of {cause.of}",
            step=cause.step,
            group=_pairs(cause.group),
            formula=_formula(cause.expression, (), explanation.value, cause.recomputed),
            parents=tuple(self._contributor(each, largest) for each in cause.parents.contributors),
            rest=self._rest(cause, explanation),
        )

    def _contributor(self, each: Contributor, largest: Decimal | None) -> Node:
        address = addresses.row(self.root.run_id, each.row_id) if each.row_id else None
        share = _share(each.share, largest) if each.share is not None and largest else None
        inputs = each.inputs
        source = source_line(each.source) if each.source else None
        if len(inputs) == 1 and isinstance(inputs[0].explanation, Explanation):
            explanation = inputs[0].explanation
            inner = self.value(explanation)
            address = addresses.row(explanation.run_id, explanation.row_id, at=explanation.at)
            return _with(inner, row=words.row_name(each.label), row_address=address, share=share)
        counted = each.value is None and each.share is None
        return Node(
            name=None,
            cell=None if counted else words.cell(each.value),
            how="",
            row=words.row_name(each.label),
            row_address=address,
            share=share,
            source=source,
            children=tuple(map(self._input, inputs)),
            is_source=source is not None and not inputs,
        )

    def _rest(self, cause: Summarised, explanation: Explanation) -> Rest | None:
        left = cause.parents.count - len(cause.parents.contributors)
        if left <= 0:
            return None
        shares = [each.share for each in cause.parents.contributors]
        known = [share for share in shares if share is not None]
        share = words.percent(1 - sum(known, Decimal(0))) if known and len(known) == len(shares) else None
        offered = next((number for number in _MORE if number > len(cause.parents.contributors)), None)
        if offered is None:
            return Rest(left, share, None, 0)
        address = addresses.explanation(
            explanation.run_id, explanation.row_id, explanation.column, at=explanation.at, top=offered
        )
        return Rest(left, share, address, min(offered, cause.parents.count))

    def _input(self, each: Input) -> Node:
        match each.explanation:
            case Explanation():
                return self.value(each.explanation, each.name)
            case JoinedRow():
                joined = _joined(each.explanation)
                how = "no row matched" if joined.is_missing else f"of the row that matched in {joined.dataset}"
                return Node(
                    name=each.name,
                    cell=words.cell(each.value),
                    how=how,
                    joined=joined,
                    source=joined.source,
                    is_source=True,
                )
            case None:
                return Node(name=each.name, cell=words.cell(each.value), how="")

    def _elsewhere(self, explanation: Explanation) -> Node:
        """A value that another run wrote."""
        title = str(self.title_of(explanation.run_id))
        in_run = InRun(explanation.run_id, title, addresses.run(explanation.run_id))
        row = words.row_name(explanation.label or explanation.row_id)
        address = addresses.row(explanation.run_id, explanation.row_id, at=explanation.at)
        return _with(self.value(explanation), row=row, row_address=address, in_run=in_run)


@dataclass(frozen=True, slots=True)
class _About:
    """What a node has whatever its cause."""

    name: str
    cell: Cell
    address: str

    def node(self, **others: object) -> Node:
        return Node(name=self.name, cell=self.cell, address=self.address, **others)  # type: ignore[arg-type]


def _with(
    node: Node,
    *,
    row: str,
    row_address: str | None,
    share: Share | None = None,
    in_run: InRun | None = None,
) -> Node:
    return replace(node, row=row, row_address=row_address, share=share, in_run=in_run)


def _formula(expression: str, inputs: tuple[Input, ...], value: Value, recomputed: Recomputed) -> Formula:
    values = {each.name: shown(each.value) for each in inputs}
    pieces = with_values(expression, values)
    if pieces:
        pieces = (*pieces, Piece(" = "), Piece(shown(value), "result"))
    return Formula(expression, pieces, recomputed.outcome, recomputed_text(recomputed))


def _join_node(join: JoinedRow) -> Node:
    joined = _joined(join)
    how = f"no row of {join.dataset} matched" if joined.is_missing else f"the row that matched in {join.dataset}"
    return Node(name=join.alias, cell=None, how=how, joined=joined, source=joined.source, is_source=True)


def _joined(join: JoinedRow) -> Joined:
    return Joined(
        alias=join.alias,
        dataset=join.dataset,
        on=join.on,
        label=join.label,
        source=source_line(join.source) if join.source else None,
        cells=tuple((name, words.cell(value)) for name, value in (join.row or {}).items()),
        is_missing=join.row is None,
        is_first_of_several=join.matches > 1,
    )


def source_line(source: Source) -> SourceLine:
    """The place of a row outside Clew."""
    return SourceLine(source.dataset, source.version, source.file, source.line, source.description)


def _share(share: Decimal, largest: Decimal) -> Share:
    return Share(words.percent(share), float(round(abs(share) / largest * _BAR, 1)), share < 0)


def _pairs(values: Mapping[str, Value]) -> str | None:
    return ", ".join(f"{name} = {shown(value)}" for name, value in values.items()) or None


def _decision(each: Decision) -> tuple[str, str, str]:
    return each.condition, shown(each.value), _pairs(each.values) or ""
