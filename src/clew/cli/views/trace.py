"""Row histories, states and trace records on a terminal."""

from collections.abc import Iterable, Mapping, Sequence

from clew.cli.views.page import grid, headed, plain, stacked, width, width_of
from clew.cli.views.page_parts import Stack, Styled
from clew.events.values import LOAD_STEP
from clew.lang.conversion import to_text
from clew.lang.typed import Value
from clew.plan import Plan
from clew.trace.records import RowState, Source, StepSummary, TraceEntry
from clew.trace.results import FoundRows, RowHistory, StepRecords

_SYSTEM = ("_row_id", "_period", "_labels", "_deleted")
_WIDTH_OF_ROW_IDS = 36
_GAP = 2
_WIDEST = 24
"""How wide a value may be before it is wrapped."""


def shown(value: Value) -> str:
    """A value as people read it. NULL differs from an empty text."""
    return "NULL" if value is None else to_text(value)


def history_page(history: RowHistory, name: str, last: int) -> Stack:
    """The history of one row under its natural key: where it came from and what each step changed."""
    lines = [line for entry in history.entries for line in _entry_lines(entry)]
    changes = sum(1 for entry in history.entries if entry.change_type != "created")
    many = {0: "no changes", 1: "1 change"}.get(changes, f"{changes} changes")
    return stacked(
        Styled.assemble(("row ", "bold"), plain(history.row_id, "bold"), "  ", plain(name)),
        grid(lines, fixed=3),
        Styled(f"{many}; --at {last} shows the whole row{_lineage(history)}", style="dim"),
    )


def _lineage(history: RowHistory) -> str:
    return "" if history.trace_id is None else f"; `clew lineage {history.trace_id}` shows where it came from and went"


def _entry_lines(entry: TraceEntry) -> Iterable[list[Styled]]:
    seq = LOAD_STEP if entry.operation_seq == 0 else str(entry.operation_seq)
    if entry.change_type == "created":
        what = source_in_words(entry.source) if entry.source else "created"
        name = "" if entry.operation_seq == 0 else entry.step_name
        yield [Styled(f"  {seq}", style="cyan"), plain(name), Styled(), plain(what)]
        return
    if entry.change_type == "deleted":
        told = Styled.assemble(("deleted", "red"), plain(f", row {entry.kept} stayed" if entry.kept else ""))
        yield [Styled(f"  {seq}", style="cyan"), plain(entry.step_name), Styled(), told]
        return
    first = [Styled(f"  {seq}", style="cyan"), plain(entry.step_name)]
    for column, diff in entry.diff.items():
        change = Styled.assemble(plain(shown(diff.old), "red"), " -> ", plain(shown(diff.new), "green"))
        yield [*first, plain(column), change]
        first = [Styled(), Styled()]


def source_in_words(source: Source) -> str:
    """Where a row came from outside Clew."""
    version = f" version {source.version}" if source.version is not None else ""
    if source.file is None:
        return source.description or f"{source.dataset}{version}"
    return f"{source.file}{source.numbered}"


def state_page(state: RowState) -> Stack:
    """One row after a step, one column per line."""
    rows = [[plain(name, "cyan"), plain(shown(value))] for name, value in (state.state or {}).items()]
    when = "as loaded" if state.at == 0 else f"after step {state.at}"
    return stacked(Styled.assemble(("row ", "bold"), plain(state.row_id, "bold"), f"  {when}"), grid(rows))


def found_page(found: FoundRows, plan: Plan, asked: Sequence[str] = ()) -> Stack:
    """Rows that a search found, with as many columns as fit, those of the condition first."""
    telling = _telling([row.state for row in found.rows], plan, asked)
    columns = _fitting(telling, [row.state for row in found.rows], width() - _WIDTH_OF_ROW_IDS)
    rows = [[plain(row.row_id), *(plain(shown(row.state.get(name))) for name in columns)] for row in found.rows]
    when = "as loaded" if found.at == 0 else f"after step {found.at}"
    count = f"{len(found.rows)} rows" if len(found.rows) != 1 else "1 row"
    left = len(telling) - len(columns)
    beside = "" if not left else f"; {left} more column{'' if left == 1 else 's'} with --json"
    last = found.rows[-1].row_id if found.has_more else None
    return stacked(headed(["row id", *columns], rows), _counted(f"{count} {when}{beside}", last))


def _counted(count: str, last_row_id: str | None) -> Styled:
    """The number of rows and, on a line to copy from, the options that show the next ones."""
    more = "" if last_row_id is None else f"\nmore rows: --limit, --after {last_row_id}"
    return Styled(count + more, style="dim")


def _telling(states: Sequence[Mapping[str, Value]], plan: Plan, asked: Sequence[str]) -> list[str]:
    """The columns worth showing: key columns, then those of the condition, then the others that have values."""
    named = [name for state in states for name in state if name not in _SYSTEM]
    key = next(iter(plan.input.names), ())
    first = [name for name in (*key, *asked) if name in named]
    return [
        name
        for name in dict.fromkeys([*first, *named])
        if name in asked or any(state.get(name) is not None for state in states)
    ]


def _fitting(columns: Sequence[str], states: Sequence[Mapping[str, Value]], room: int) -> list[str]:
    """The first columns that fit side by side, at least one; long texts may be wrapped."""
    fitting = list[str]()
    for name in columns:
        widest = max(width_of(name), *(width_of(shown(state.get(name))) for state in states))
        room -= _GAP + min(widest, _WIDEST)
        if room < 0 and fitting:
            break
        fitting.append(name)
    return fitting


def step_page(records: StepRecords, plan: Plan, keys: Mapping[str, str]) -> Stack:
    """Everything that a step did, with the keys of rows that have one."""
    step = next((each for each in plan.steps if each.seq == records.operation_seq), None)
    title = f"step {records.operation_seq}" + (f" {step.name}" if step else "")
    if not records.records:
        return stacked(plain(title, "bold"), Styled("no rows", style="dim"))
    rows = list[list[Styled]]()
    for record in records.records:
        before, after = record.before or {}, record.after or {}
        if record.change_type == "updated":
            changes = ", ".join(f"{name} {shown(before.get(name))} -> {shown(after[name])}" for name in after)
        elif record.change_type == "created":
            told = {name: value for name, value in after.items() if value is not None and name not in _SYSTEM}
            changes = ", ".join(f"{name} {shown(value)}" for name, value in told.items())
        else:
            changes = f"row {record.kept} stayed" if record.kept else ""
        key = [plain(keys.get(record.row_id, ""))] if keys else []
        rows.append([plain(record.row_id), *key, plain(record.change_type), plain(changes)])
    count = f"{len(rows)} rows" if len(rows) != 1 else "1 row"
    last = records.records[-1].row_id if records.has_more else None
    headings = ["row id", *(["key"] if keys else []), "change", "what"]
    return stacked(plain(title, "bold"), headed(headings, rows, fixed=len(headings) - 1), _counted(count, last))


def counts_page(summaries: Sequence[StepSummary]) -> Stack:
    """The counts of each step."""
    rows = [
        [
            plain(each.operation_seq, "cyan"),
            plain(each.step_name),
            plain(_count_in_words(each)),
            plain(", ".join(f"{name} {count:,}" for name, count in (each.columns or {}).items())),
        ]
        for each in summaries
    ]
    return stacked(headed(["seq", "step", "rows", "by column"], rows, fixed=2))


def _count_in_words(each: StepSummary) -> str:
    for count, word in ((each.updated, "changed"), (each.created, "created"), (each.deleted, "deleted")):
        if count:
            return f"{count:,} {word}"
    if each.outcome != "done":
        return each.outcome
    return "" if each.step_type == "output" else "none"
