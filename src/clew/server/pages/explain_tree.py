"""An explanation as a tree of nodes: how each cause of a value is shown."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal

from clew.deferred import dataclass
from clew.explain.outline import kept_text, recomputed_text, shown
from clew.explain.tree import (
    Appended,
    Contributor,
    CutOff,
    Decision,
    Deleted,
    Explanation,
    Input,
    JoinedRow,
    Loaded,
    Recomputed,
    Summarised,
    Unset,
    Updated,
    WindowRows,
)
from clew.lang.narrowing import literal_of, only
from clew.lang.typed import Value
from clew.server.pages import addresses, words
from clew.server.pages.explain_nodes import (
    Formula,
    InRun,
    Joined,
    Piece,
    Rest,
    Share,
    TreeNode,
    source_line,
    with_values,
)
from clew.server.pages.words import ValueCell

MOST_ON_A_PAGE = 500
"""Rows of a summary that are explained before the page is sent."""
MOST_STREAMED = 5000
"""Rows that a script adds to it, piece by piece."""
_MORE = (5, 50, MOST_ON_A_PAGE, MOST_STREAMED)
_BAR = 100


@dataclass(frozen=True, slots=True)
class RunTitle:
    """The name of a run in a sentence."""

    title: str
    period: str

    def __str__(self) -> str:
        return f"{self.title}, {self.period}"


TitleOf = Callable[[str], RunTitle]
"""The title of a run by its id."""


@dataclass(frozen=True, slots=True)
class Before:
    """The rows of a summary that are on the page already."""

    rows: int = 0
    share: Decimal = Decimal(0)
    """Their part of the sum."""
    largest: Decimal | None = None
    """The largest part that one of them is, which gives all bars their scale."""


def tree_of(explanation: Explanation, title_of: TitleOf, before: Before | None = None) -> TreeNode:
    """The tree of an explanation."""
    return _Tree(title_of, explanation, before).value(explanation)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Turns an explanation into nodes."""

    title_of: TitleOf
    root: Explanation
    before: Before | None = None

    def value(self, explanation: Explanation, name: str | None = None) -> TreeNode:
        """A value and the nodes below it."""
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
                selector = "it applies to every row" if cause.selector is None else f"by its selector {cause.selector}"
                decisions = tuple(map(_decision, cause.decisions))
                return about.node(how=f"deleted, {selector}{kept_text(cause)}", step=cause.step, decisions=decisions)
            case Unset():
                return about.node(how=cause.reason, is_source=True)

    def _loaded(self, cause: Loaded, about: "_About") -> TreeNode:
        upstream = self._elsewhere(cause.upstream)
        return about.node(
            how="loaded",
            source=source_line(cause.source),
            children=upstream,
            is_source=not upstream and cause.cut is None,
            cut=_cut(cause.cut),
        )

    def _updated(self, cause: Updated, about: "_About", value: Value) -> TreeNode:
        used = {id(each.explanation) for each in cause.inputs}
        joins = (_join_node(join) for join in cause.joins if id(join) not in used)
        windows = map(self._window, cause.windows)
        calls = {window.call for window in cause.windows}
        return about.node(
            how="set",
            step=cause.step,
            formula=_formula(cause.expression, cause.inputs, value, cause.recomputed),
            children=(*(self._input(each) for each in cause.inputs if each.name not in calls), *joins, *windows),
        )

    def _window(self, window: WindowRows) -> TreeNode:
        """The rows that a call with OVER looked at."""
        rows = window.parents.contributors
        largest = max((abs(each.share) for each in rows if each.share is not None), default=None)
        left = window.parents.count - len(rows)
        order = f", in the order {window.order}" if window.order else ""
        return TreeNode(
            name=window.call,
            cell=words.cell(window.value),
            how=f"from {words.counted(window.parents.count, 'row')}{order}",
            group=_pairs(window.group),
            parents=tuple(self._contributor(each, largest) for each in rows),
            rest=Rest(left, None, None, 0) if left > 0 else None,
        )

    def _appended(self, cause: Appended, about: "_About", value: Value) -> TreeNode:
        return about.node(
            how="appended",
            step=cause.step,
            formula=_formula(cause.expression, cause.inputs, value, cause.recomputed),
            source=source_line(cause.source) if cause.source else None,
            children=(*map(self._input, cause.inputs), *self._elsewhere(cause.upstream)),
            cut=_cut(cause.cut),
        )

    def _summarised(self, cause: Summarised, about: "_About", explanation: Explanation) -> TreeNode:
        shares = [abs(each.share) for each in cause.parents.contributors if each.share is not None]
        before = self.before or Before()
        largest = before.largest or max(shares, default=None)
        rows = words.counted(cause.parents.count, "row")
        return about.node(
            how=f"summed from {rows} of {cause.of}" if largest is not None else f"from {rows} of {cause.of}",
            step=cause.step,
            group=_pairs(cause.group),
            formula=_formula(cause.expression, (), explanation.value, cause.recomputed),
            parents=tuple(self._contributor(each, largest) for each in cause.parents.contributors),
            rest=self._rest(cause, explanation, before),
        )

    def _contributor(self, each: Contributor, largest: Decimal | None) -> TreeNode:
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
        return TreeNode(
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

    def _rest(self, cause: Summarised, explanation: Explanation, before: Before) -> Rest | None:
        seen = before.rows + len(cause.parents.contributors)
        left = cause.parents.count - seen
        if left <= 0:
            return None
        shares = [each.share for each in cause.parents.contributors]
        known = [share for share in shares if share is not None]
        share = (
            words.percent(1 - before.share - sum(known, Decimal(0))) if known and len(known) == len(shares) else None
        )
        offered = next((number for number in _MORE if number > seen), None)
        if offered is None:
            return Rest(left, share, None, 0)
        address = addresses.explanation(
            explanation.run_id, explanation.row_id, explanation.column, at=explanation.at, top=offered
        )
        scale = before.largest or max(map(abs, known), default=None)
        more = addresses.explained_rows(
            explanation.run_id,
            explanation.row_id,
            explanation.column,
            at=explanation.at,
            scale=scale,
            share=before.share + sum(known, Decimal(0)),
        )
        is_a_page = offered <= MOST_ON_A_PAGE
        return Rest(left, share, address if is_a_page else None, min(offered, cause.parents.count), more, seen)

    def _input(self, each: Input) -> TreeNode:
        upstream = self._elsewhere(each.upstream)
        match each.explanation:
            case Explanation():
                return self.value(each.explanation, each.name)
            case JoinedRow():
                joined = _joined(each.explanation, _draft(self.root.run_id, each.explanation, each.name))
                how = "no row matched" if joined.is_missing else f"from the row that matched in {joined.dataset}"
                return TreeNode(
                    name=each.name,
                    cell=words.cell(each.value),
                    how=how,
                    joined=joined,
                    source=joined.source,
                    children=upstream,
                    is_source=not upstream and each.cut is None,
                    cut=_cut(each.cut),
                )
            case None:
                return TreeNode(
                    name=each.name,
                    cell=words.cell(each.value),
                    how="",
                    address=_cut(each.cut),
                    children=upstream,
                    cut=_cut(each.cut),
                )

    def _elsewhere(self, explanation: Explanation | None) -> tuple[TreeNode, ...]:
        """A value that another run wrote."""
        if explanation is None:
            return ()
        title = str(self.title_of(explanation.run_id))
        in_run = InRun(explanation.run_id, title, addresses.run(explanation.run_id))
        row = words.row_name(explanation.label or explanation.row_id)
        address = addresses.row(explanation.run_id, explanation.row_id, at=explanation.at)
        value = _Tree(self.title_of, explanation).value(explanation)
        return (_with(value, row=row, row_address=address, in_run=in_run),)


@dataclass(frozen=True, slots=True)
class _About:
    """A node, with the fields that do not depend on its cause."""

    name: str
    cell: ValueCell
    address: str

    def node(self, **others: object) -> TreeNode:
        return TreeNode(name=self.name, cell=self.cell, address=self.address, **others)  # type: ignore[arg-type]


def _with(
    node: TreeNode,
    *,
    row: str,
    row_address: str | None,
    share: Share | None = None,
    in_run: InRun | None = None,
) -> TreeNode:
    return replace(node, row=row, row_address=row_address, share=share, in_run=in_run)


def _cut(cut: CutOff | None) -> str | None:
    return None if cut is None else addresses.explanation(cut.run_id, cut.row_id, cut.column, at=cut.at)


def _formula(expression: str, inputs: tuple[Input, ...], value: Value, recomputed: Recomputed) -> Formula:
    values = {each.name: shown(each.value) for each in inputs}
    pieces = with_values(expression, values)
    if pieces:
        pieces = (*pieces, Piece(" = "), Piece(shown(value), "result"))
    return Formula(expression, pieces, recomputed.outcome, recomputed_text(recomputed))


def _join_node(join: JoinedRow) -> TreeNode:
    joined = _joined(join)
    how = f"no row of {join.dataset} matched" if joined.is_missing else f"the row that matched in {join.dataset}"
    return TreeNode(name=join.alias, cell=None, how=how, joined=joined, source=joined.source, is_source=True)


def _draft(run_id: str, join: JoinedRow, name: str) -> str | None:
    """Where to ask what another value of a joined row would change: the question, to be edited before it is asked."""
    column = name.rpartition(".")[2]
    row = join.row or {}
    value = literal_of(row.get(column))
    dataset = join.source.dataset if join.source is not None else join.dataset
    can_be_written = f"{dataset} {column}".split() == [dataset, column]
    if column not in row or value is None or not can_be_written:
        return None
    told = {
        other: literal
        for other, each in row.items()
        if other != column and not other.startswith("_") and not isinstance(each, float)
        for literal in [literal_of(each)]
        if literal is not None
    }
    where = " AND ".join(only(other, literal) for other, literal in told.items())
    return addresses.what_if(run_id, draft=f"{dataset}{' where ' if where else ''}{where}: {column} = {value}")


def _joined(join: JoinedRow, what_if: str | None = None) -> Joined:
    return Joined(
        alias=join.alias,
        dataset=join.dataset,
        on=join.on,
        label=join.label,
        source=source_line(join.source) if join.source else None,
        cells=tuple((name, words.cell(value)) for name, value in (join.row or {}).items()),
        is_missing=join.row is None,
        is_first_of_several=join.matches > 1,
        what_if=what_if,
    )


def _share(share: Decimal, largest: Decimal) -> Share:
    return Share(words.percent(share), float(round(abs(share) / largest * _BAR, 1)), share < 0)


def _pairs(values: Mapping[str, Value]) -> str | None:
    return ", ".join(f"{name} = {shown(value)}" for name, value in values.items()) or None


def _decision(each: Decision) -> tuple[str, str, str]:
    return each.condition, shown(each.value), _pairs(each.values) or ""
