"""Explanations as an outline of sentences, which a terminal and a page show in their own ways."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from clew.deferred import dataclass
from clew.definitions.adjustment_columns import ABOUT, APPROVED_BY, MADE_BY, REASON
from clew.explain.tree import (
    Appended,
    Cause,
    Contributor,
    Decision,
    Deleted,
    Explanation,
    Input,
    JoinedRow,
    Loaded,
    Parents,
    Recomputed,
    StepRef,
    Summarised,
    Unset,
    Updated,
    WindowRows,
)
from clew.explain.why_not import (
    DeletedBefore,
    InOutput,
    LeftOut,
    MadeLater,
    NeverLoaded,
    NotWritten,
    Whereabouts,
    WhyNot,
)
from clew.lang.literals import text_of_value
from clew.lang.typed import Value
from clew.trace.records import Source

_SHORT = 8
"""How much of a run id is enough to name the run."""


@dataclass(frozen=True, slots=True)
class Item:
    """A line, and what is below it. What users wrote in it has not been escaped."""

    text: str
    children: tuple["Item", ...] = ()


def shown(value: Value) -> str:
    """A value in a sentence: strings in quotes, so that an empty one is not taken for NULL, numbers in groups."""
    return f"{value:,f}" if isinstance(value, Decimal) else text_of_value(value)


def outline(explanation: Explanation) -> Item:
    """The outline of an explanation."""
    how = _how(explanation.cause)
    return Item(f"{explanation.column} = {shown(explanation.value)}  {how.text}", how.children)


def _how(cause: Cause) -> Item:
    """How a value came about."""
    match cause:
        case Loaded():
            return Item(f"loaded, {source_text(cause.source)}", _upstreams(cause.upstream))
        case Unset():
            return Item(cause.reason)
        case Deleted():
            return Item(_deleted(cause), (*_decisions(cause.decisions), *_kept(cause)))
        case Updated():
            formula = _formula(cause.expression, cause.recomputed)
            return Item(_step(cause.step), (formula, *_updated(cause)))
        case Appended():
            return Item(f"appended in {_step(cause.step)}", tuple(_appended(cause)))
        case Summarised():
            return Item(f"summary row, {_step(cause.step)}", tuple(_summarised(cause)))


def _updated(cause: Updated) -> Iterable[Item]:
    calls = {window.call for window in cause.windows}
    for each in cause.inputs:
        if each.name not in calls:
            yield _input(each)
    used = {id(each.explanation) for each in cause.inputs}
    for join in cause.joins:
        if id(join) not in used:
            yield Item(f"{join.alias}: {_joined(join)}")
    for window in cause.windows:
        yield Item(window_text(window), tuple(_rows(window.parents)))


def window_text(window: WindowRows) -> str:
    """What a call with OVER looked at, as a sentence."""
    count = window.parents.count
    rows = "no row" if count == 0 else "1 row" if count == 1 else f"{count:,} rows"
    group = f" with {_pairs(window.group)}" if window.group else ""
    order = f", in the order {window.order}" if window.order else ""
    return f"{window.call} = {shown(window.value)} from {rows}{group}{order}"


def _appended(cause: Appended) -> Iterable[Item]:
    yield _formula(cause.expression, cause.recomputed)
    if cause.source is not None:
        yield Item(f"from {source_text(cause.source)}")
    for each in cause.inputs:
        yield _input(each)
    yield from _upstreams(cause.upstream)


def _summarised(cause: Summarised) -> Iterable[Item]:
    rows = "1 row" if cause.parents.count == 1 else f"{cause.parents.count:,} rows"
    group = f" with {_pairs(cause.group)}" if cause.group else ""
    yield Item(f"= {cause.expression} over {rows} of {cause.of}{group}, {recomputed_text(cause.recomputed)}")
    yield from _rows(cause.parents)


def _rows(parents: Parents) -> Iterable[Item]:
    """The rows behind a value."""
    for contributor in parents.contributors:
        yield _contributor(contributor)
    more = parents.count - len(parents.contributors)
    if more > 0:
        yield Item(f"... {more:,} more (--all)")


def _contributor(each: Contributor) -> Item:
    share = "" if each.share is None else f"  {each.share * 100:.1f} %"
    value = "" if each.value is None and not each.inputs else f"{shown(each.value)}{share}  "
    source = "" if each.source is None else f"  {source_text(each.source)}"
    if len(each.inputs) == 1 and isinstance(each.inputs[0].explanation, Explanation):
        how = _how(each.inputs[0].explanation.cause)
        return Item(f"{value}{each.label}  {how.text}{source}", how.children)
    return Item(f"{value}{each.label}{source}", tuple(_input(each) for each in each.inputs))


def _input(each: Input) -> Item:
    match each.explanation:
        case Explanation():
            how = _how(each.explanation.cause)
            return Item(f"{each.name} = {shown(each.value)}  {how.text}", how.children)
        case JoinedRow():
            return Item(f"{each.name} = {shown(each.value)}  {_joined(each.explanation)}", _upstreams(each.upstream))
        case None:
            return Item(f"{each.name} = {shown(each.value)}", _upstreams(each.upstream))


def _joined(join: JoinedRow) -> str:
    if join.row is None:
        return f"no row of {join.dataset} has {join.on}"
    told = [join.dataset, join.label]
    if join.source is not None and join.source.dataset == join.dataset:
        told = [join.dataset + _version(join.source), join.label, _file(join.source)]
    elif join.source is not None:
        told.append(source_text(join.source))
    several = None if join.matches < 2 else "the first of several"
    return ", ".join(each for each in (*told, several, _adjusted(join.row)) if each)


def _adjusted(row: Mapping[str, Value]) -> str | None:
    """Why there is an adjustment, and who made it, where the joined row is one."""
    if not ABOUT.keys() <= row.keys():
        return None
    return f"{row[REASON]} (made by {row[MADE_BY]}, approved by {row[APPROVED_BY]})"


def _upstreams(explanation: Explanation | None) -> tuple[Item, ...]:
    """How a value came about in the run that wrote it."""
    if explanation is None:
        return ()
    inner = outline(explanation)
    row = explanation.label or explanation.row_id
    run = f"{explanation.project}, {explanation.period}, run {explanation.run_id[:_SHORT]}"
    return (Item(f"in {run}, row {row}: {inner.text}", inner.children),)


def _formula(expression: str, recomputed: Recomputed) -> Item:
    return Item(f"= {expression}, {recomputed_text(recomputed)}")


def recomputed_text(recomputed: Recomputed) -> str:
    """How the value compares with the one that was computed again."""
    match recomputed.outcome:
        case "equal" if recomputed.by == "duckdb":
            checked = f"{recomputed.rows_in_python:,} of {recomputed.rows:,} rows"
            return f"recomputed with DuckDB: equal; {checked} also in Python, the same (--check all: every row)"
        case "equal":
            return "recomputed: equal"
        case "not checked":
            return f"not recomputed: {recomputed.reason}"
        case "differs":
            why = f", {recomputed.reason}" if recomputed.reason else ""
            stored, again = shown(recomputed.stored), shown(recomputed.recomputed)
            return f"recomputed: differs (stored {stored}, recomputed {again}{why})"


def source_text(source: Source) -> str:
    """The place of a row outside Clew."""
    if source.file is None:
        about = f" ({source.description})" if source.description else ""
        return f"{source.dataset}{_version(source)}{about}"
    return f"{source.dataset}{_version(source)}, {_file(source)}"


def _version(source: Source) -> str:
    return f" v{source.version}" if source.version is not None else ""


def _file(source: Source) -> str | None:
    return None if source.file is None else f"{source.file}{source.numbered}"


def _places(sources: Sequence[Source]) -> list[str]:
    """The places of several rows: lines of one file together."""
    lines = dict[Source, list[int]]()
    for source in dict.fromkeys(sources):
        file = replace(source, line=None, table_row_id=None)
        lines.setdefault(file, []).extend([] if source.line is None else [source.line])
    told = list[str]()
    for source, numbers in lines.items():
        several = f" {source.unit}s {', '.join(f'{number:,}' for number in numbers)}" if len(numbers) > 1 else ""
        told.append(source_text(source if several or not numbers else replace(source, line=numbers[0])) + several)
    return told


def _step(step: StepRef) -> str:
    return f'step {step.seq} "{step.name}"'


def _deleted(cause: Deleted) -> str:
    if cause.kept is not None and cause.selector is None:
        return f"deleted in {_step(cause.step)}"
    return f"deleted in {_step(cause.step)}{_selector(cause.selector, cause.resolved)}"


def _kept(cause: Deleted) -> tuple[Item, ...]:
    """The row that stayed, and what decided."""
    kept = cause.kept
    if kept is None:
        return ()
    name = kept.label if kept.label and kept.label != kept.row_id else ""
    row = f"{name} (row {kept.row_id})" if name else f"row {kept.row_id}"
    values = (Item(f"its values: {_pairs(kept.values)}"), Item(f"of the deleted row: {_pairs(kept.own)}"))
    return (Item(f"{row} stayed: {kept.rule}{_checked(kept.recomputed)}", values if kept.values else ()),)


def kept_text(cause: Deleted) -> str:
    """The row that stayed, as the end of a sentence; empty where none did."""
    return "" if cause.kept is None else f"; {cause.kept.label or cause.kept.row_id} stayed: {cause.kept.rule}"


def _checked(recomputed: Recomputed) -> str:
    match recomputed.outcome:
        case "equal":
            return ", decided again with the same result"
        case "differs":
            return f", but deciding again gives {recomputed.reason or recomputed.recomputed}"
        case "not checked":
            return ""


def _selector(text: str | None, resolved: str | None) -> str:
    if text is None:
        return ", which takes every row"
    return f" by its selector {text}" + (f" = {resolved}" if resolved else "")


def _decisions(decisions: Iterable[Decision]) -> tuple[Item, ...]:
    return tuple(
        Item(f"{each.condition} was {shown(each.value)}" + (f": {_pairs(each.values)}" if each.values else ""))
        for each in decisions
    )


def _pairs(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name} = {shown(value)}" for name, value in values.items())


def why_not_outline(answer: WhyNot) -> Item:
    """The outline of why rows are not in an output."""
    output = f"{_step(answer.output)}"
    if not answer.rows:
        head = f"no row with {answer.where} was loaded from {answer.dataset} for period {answer.period}"
        children = () if answer.never_loaded is None else tuple(_never_loaded(answer.never_loaded))
        return Item(head, (*children, Item(f"so none can be in the output of {output}")))
    count = f"{len(answer.rows):,}{' and more' if answer.has_more else ''}"
    rows = "row" if count == "1" else "rows"
    head = f"{count} {rows} with {answer.where}, seen from the output of {output}"
    alike = list[list[Whereabouts]]()
    for row in answer.rows:
        if alike and (alike[-1][0].verdict, alike[-1][0].created_by) == (row.verdict, row.created_by):
            alike[-1].append(row)
        else:
            alike.append([row])
    return Item(head, tuple(_whereabouts(rows) for rows in alike))


def _never_loaded(where: NeverLoaded) -> Iterable[Item]:
    """Where the run looked, by which rule, and where there is such a row."""
    if where.read is not None:
        used = next((each.rule for each in where.rules if each.reason is None), None)
        yield Item(f"the run read {where.read}" + (f', by the rule "{used}"' if used is not None else ""))
    for each in where.rules:
        if each.reason is not None:
            yield Item(f'the rule "{each.rule}" did not apply: {each.reason}')
    for found in where.elsewhere:
        period = "without a period" if found.period is None else f"of period {found.period}"
        source = f", {source_text(found.source)}" if found.source else ""
        run = f", loaded by run {found.run_id[:8]}" if found.run_id else ""
        reason = f": {found.reason}" if found.reason else ""
        yield Item(f"there is {found.label or 'one'} {period}{source}{run}{reason}")
    for answer in where.upstream:
        inner = why_not_outline(answer)
        yield Item(f"in run {answer.run_id[:8]}, which registered it: {inner.text}", inner.children)
    if where.not_looked_into:
        yield Item(f"{where.not_looked_into:,} more files may contain it, but are too many or too large to search")


def never_loaded_lines(where: NeverLoaded) -> tuple[str, ...]:
    """The same as lines of text."""
    return tuple(line for item in _never_loaded(where) for line in _lines(item))


def _lines(item: Item, indent: str = "") -> Iterator[str]:
    yield indent + item.text
    for child in item.children:
        yield from _lines(child, f"{indent}\u00a0\u00a0")


DELETED_BEFORE = "deleted before it was registered"
"""What became of a row that a registered dataset holds as a deleted one."""


def not_written_text(verdict: NotWritten) -> str:
    """Why no row is in an output."""
    return "the output was skipped" if verdict.outcome == "skipped" else "the run ended before the output was written"


def _whereabouts(rows: Sequence[Whereabouts]) -> Item:
    """What happened to rows with the same outcome."""
    name = ", ".join(each.label or each.row_id for each in rows)
    places = _places([each.source for each in rows if each.source])
    loaded = f"loaded from {' and '.join(places)}" if places else "loaded"
    if rows[0].created_by is not None:
        loaded = f"created in {_step(rows[0].created_by)}" + (f" from {' and '.join(places)}" if places else "")
    verdict = rows[0].verdict
    match verdict:
        case Deleted():
            reasons = (*_decisions(verdict.decisions), *_kept(verdict))
            return Item(f"{name}: {loaded}, {_deleted(verdict)}", reasons)
        case DeletedBefore():
            return Item(f"{name}: {loaded}, {DELETED_BEFORE}")
        case MadeLater():
            return Item(f"{name}: {loaded}, which is after the output")
        case NotWritten():
            return Item(f"{name}: {loaded}; {not_written_text(verdict)}")
        case LeftOut():
            selector = _selector(verdict.selector, verdict.resolved)
            return Item(f"{name}: {loaded}, left out{selector}", _decisions(verdict.decisions))
        case InOutput():
            behind = Item(f"not among the columns of the output: {_pairs(verdict.not_written)}")
            written = f"{name}: {loaded}, and in the output: {_pairs(verdict.state)}"
            return Item(written, (behind,) if verdict.not_written else ())
