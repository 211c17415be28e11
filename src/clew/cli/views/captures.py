"""Captures and postlude jobs on a terminal: lines and tables for a run, statistics, rows, differences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from clew.api.run_view import RunView
from clew.captures.differences import CaptureDiff, ColumnPair, RowChange
from clew.captures.freezing import Degradation, Reason
from clew.captures.manifests import Manifest
from clew.captures.queue import CaptureOutcome, CaptureRecord, CaptureStatus
from clew.captures.report import cut, deleted_rows, shown, sparkline
from clew.captures.statistics import ColumnStatistics, Statistics
from clew.cli.formatting import duration, local_minute, short, size
from clew.cli.views.page import grid, headed, heading, label, plain
from clew.cli.views.page_parts import PagePart, Styled
from clew.trace.results import shown as shown_value

STATUS_COLOURS = {
    CaptureStatus.READY: "green",
    CaptureStatus.FAILED: "bold red",
    CaptureStatus.DROPPED: "yellow",
    CaptureStatus.EXPIRED: "yellow",
    CaptureStatus.RUNNING: "cyan",
}

_NOT_MEANT = {Reason.RUN_NOT_COMPLETED.value, Reason.WHEN_NOT_TRUE.value}
"""Reasons why a job does not apply to a run."""


def capture_lines(view: RunView) -> list[str]:
    """One line for each requested capture and each applicable job of a run that has ended."""
    if not view.snapshot.status.is_terminal:
        return []
    captures = [record for record in view.captures if record.request is not None]
    jobs = [record for record in view.captures if record.kind == "job" and record.outcome.drop_reason not in _NOT_MEANT]
    return [
        *(f"capture {record.capture_id}  {what(record)}" for record in captures),
        *(f"job {_name_in(view, record)}: {what(record)}" for record in jobs),
    ]


def captures_of_run(view: RunView) -> Iterator[PagePart]:
    """Tables of the captures and jobs of a run."""
    captures = [record for record in view.captures if record.kind == "capture"]
    if captures:
        yield plain("")
        yield headed(
            ["capture", "breakpoint", "status", "kept"],
            [[plain(each.capture_id), plain(each.breakpoint), status(each), plain(kept(each))] for each in captures],
        )
    jobs = [record for record in view.captures if record.kind == "job"]
    if jobs:
        yield plain("")
        yield headed(["job", "at", "status", "bytes", "waited", "took", ""], [_job_row(view, each) for each in jobs])


def status(record: CaptureRecord) -> PagePart:
    """The status, in its colour."""
    return plain(record.status.value, STATUS_COLOURS.get(record.status, ""))


def what(record: CaptureRecord) -> str:
    """The status of a capture or job and what it contains, in a few words."""
    told = kept(record)
    label = record.breakpoint if record.kind == "capture" else ""
    return "  ".join(part for part in (label, record.status.value, told) if part)


def kept(record: CaptureRecord) -> str:
    """What was kept or sent, or why not."""
    outcome = record.outcome
    if outcome.error is not None:
        return f"{outcome.error.code}: {plain(outcome.error.message)}"
    if outcome.drop_reason is not None:
        return outcome.drop_reason
    if outcome.manifest is not None:
        manifest = outcome.manifest
        rows = f"{manifest.mode}, {manifest.rows:,} rows"
        told = rows if not manifest.keeps_rows else f"{rows}, {size(manifest.size)}"
        return f"{told}{_stepped_down(manifest.degradations)}"
    if outcome.job is not None:
        sent = [f"{each.rows:,} rows, {size(each.size)} to {each.sink}" for each in outcome.job.emissions]
        return "; ".join(sent)
    return record.request.mode.value if record.request is not None else ""


def _stepped_down(steps: tuple[Degradation, ...]) -> str:
    if not steps:
        return ""
    reasons = ", ".join(f"{step.reason} {step.found:,} > {step.limit:,}" for step in steps)
    return f" (instead of {steps[0].mode}: {reasons})"


def job_name(record: CaptureRecord) -> str:
    """The name of a job."""
    report = record.outcome.job
    return plain(report.name).plain if report is not None and report.name else record.slot


def _name_in(view: RunView, record: CaptureRecord) -> str:
    """The name of a job in the plan: a job that never started has no report with a name."""
    jobs = view.plan.extensions.postlude_jobs if view.plan is not None else ()
    names = {job.id: job.name for job in jobs if job.name}
    return plain(names.get(record.slot) or job_name(record)).plain


def _job_row(view: RunView, record: CaptureRecord) -> list[PagePart]:
    outcome: CaptureOutcome = record.outcome
    report = outcome.job
    waited = duration(timedelta(milliseconds=report.wait_ms)) if report is not None else ""
    took = duration(timedelta(milliseconds=report.run_ms)) if report is not None else ""
    return [
        plain(_name_in(view, record)),
        plain(record.breakpoint),
        status(record),
        plain(size(report.size) if report is not None else ""),
        plain(waited),
        plain(took),
        plain(kept(record)),
    ]


_WIDEST_VALUE, _WIDEST_TABLE = 24, 118


def capture_table(records: Iterable[CaptureRecord]) -> PagePart:
    """Captures, one per line."""
    rows = [
        [
            plain(each.capture_id),
            plain(each.breakpoint),
            plain(short(each.run_id)),
            status(each),
            plain(kept(each)),
            plain(local_minute(each.expires_at)),
        ]
        for each in records
    ]
    return headed(["capture", "breakpoint", "run", "status", "kept", "expires"], rows, fixed=2)


def capture_page(record: CaptureRecord, manifest: Manifest, statistics: Statistics) -> Iterator[PagePart]:
    """A capture with the statistics of its columns."""
    yield heading(f"capture {record.capture_id}")
    left_out = ", ".join(f"{each.column} ({each.reason})" for each in manifest.left_out)
    masked = ", ".join(f"{each.name} ({each.mask})" for each in manifest.columns if each.mask)
    deleted = deleted_rows(manifest, statistics)
    yield grid(
        [
            [label("at"), plain(f"{manifest.breakpoint}, step {manifest.seq}")],
            [label("run"), plain(f"{manifest.run_id}, {manifest.project} for {manifest.period}")],
            [label("kept"), plain(kept(record))],
            *([[label("deleted"), plain(f"{deleted:,}, not counted below")]] if deleted else []),
            *([[label("without"), plain(left_out)]] if left_out else []),
            *([[label("masked"), plain(masked)]] if masked else []),
            [label("taken"), plain(f"{local_minute(manifest.created_at)}, in {manifest.write_ms:,} ms")],
            [label("expires"), plain(local_minute(manifest.expires_at))],
        ]
    )
    yield plain("")
    yield headed(
        ["column", "type", "nulls", "distinct", "min", "max", "mean", "spread"],
        [_column_row(each) for each in statistics.columns],
    )
    yield from _quantiles(statistics)


def _quantiles(statistics: Statistics) -> Iterator[PagePart]:
    """Quantiles of numbers and dates. A separate table, because one table would be too wide."""
    found = [(each.name, each.quantiles) for each in statistics.columns if each.quantiles]
    if found:
        shares = list(found[0][1])
        yield plain("")
        yield headed(
            ["quantiles", *(f"{int(share[1:])} %" for share in shares)],
            [[plain(name), *(plain(shown(values[share])) for share in shares)] for name, values in found],
        )


def _column_row(column: ColumnStatistics) -> list[PagePart]:
    return [
        plain(column.name),
        plain(column.type),
        plain(f"{column.nulls:,}"),
        plain(f"{column.distinct:,}"),
        plain(cut(shown(column.min), _WIDEST_VALUE)),
        plain(cut(shown(column.max), _WIDEST_VALUE)),
        plain(shown(column.mean) if column.mean is not None else ""),
        _spread(column),
    ]


def _spread(column: ColumnStatistics) -> PagePart:
    if column.histogram:
        return Styled(sparkline(each.count for each in column.histogram), style="cyan")
    return plain(", ".join(f"{cut(shown(each.value), 12)} {each.count:,}" for each in column.top[:2]))


def rows_table(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> tuple[PagePart, int]:
    """Rows as a table with as many columns as fit, and the number of columns left out."""
    fitting, width = list[str](), 0
    for name in columns:
        width += 2 + max([len(name), *(min(_WIDEST_VALUE, len(_value(row[name]))) for row in rows)])
        if width > _WIDEST_TABLE and fitting:
            break
        fitting.append(name)
    cells = [[plain(cut(_value(row[name]), _WIDEST_VALUE)) for name in fitting] for row in rows]
    return headed(fitting, cells, fixed=len(fitting)), len(columns) - len(fitting)


def _value(value: object) -> str:
    return shown_value(value)  # type: ignore[arg-type]


def diff_page(diff: CaptureDiff) -> Iterator[PagePart]:
    """The differences between two captures."""
    yield heading(f"{short(diff.before)} ({diff.rows_before:,} rows) against {short(diff.after)} ({diff.rows_after:,})")
    yield grid(
        [
            [label("by"), plain(", ".join(diff.key))],
            [label("added"), plain(f"{diff.added:,}")],
            [label("removed"), plain(f"{diff.removed:,}")],
            [label("changed"), plain(f"{diff.changed:,}")],
            [label("same"), plain(f"{diff.same:,}")],
        ]
    )
    groups = (("added", diff.examples_added), ("removed", diff.examples_removed), ("changed", diff.examples_changed))
    for word, examples in groups:
        if examples:
            yield plain("")
            yield headed([word, "what"], [_change_row(each, word) for each in examples])
    differing = [pair for pair in diff.columns if _differs(pair)]
    if differing:
        yield plain("")
        yield headed(["column", "changed", "", "nulls", "distinct", "mean", "spread"], _pair_rows(differing))


def _change_row(change: RowChange, word: str) -> list[PagePart]:
    key = ", ".join(cut(shown(value)) for value in change.called_by.values())
    if word == "changed":
        told = ", ".join(
            f"{name} {cut(shown(each.before))} -> {cut(shown(each.after))}" for name, each in change.columns.items()
        )
    else:
        side = {name: each.after if word == "added" else each.before for name, each in change.columns.items()}
        told = ", ".join(f"{name} {cut(shown(value))}" for name, value in side.items() if value is not None)
    return [plain(key), plain(told)]


def _differs(pair: ColumnPair) -> bool:
    return pair.changed > 0 or pair.before != pair.after


def _pair_rows(pairs: Iterable[ColumnPair]) -> Iterator[list[PagePart]]:
    for pair in pairs:
        first = True
        for word, side in (("before", pair.before), ("after", pair.after)):
            name, changed = (pair.name, f"{pair.changed:,}") if first else ("", "")
            first = False
            if side is None:
                yield [plain(name), plain(changed), plain(word), plain("-"), plain("-"), plain("-"), plain("-")]
            else:
                mean = shown(side.mean) if side.mean is not None else ""
                yield [
                    plain(name),
                    plain(changed),
                    plain(word),
                    plain(f"{side.nulls:,}"),
                    plain(f"{side.distinct:,}"),
                    plain(mean),
                    _spread(side),
                ]
