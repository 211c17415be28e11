"""An output of a run: where it went, and the rows and columns that it has written."""

from urllib.parse import parse_qs, urlsplit

from clew.api.run import Run
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import NOT_AN_OUTPUT
from clew.events.artifacts import OUTPUT_KIND
from clew.events.snapshot import StepSnapshot, StepStatus
from clew.lang.text_form import text_of
from clew.plan.operations import OutputStep
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words
from clew.server.pages.rows_page import RowsPage, RowsQuery, rows_page


@dataclass(frozen=True, slots=True)
class OutputPage:
    """An output."""

    seq: int
    name: str
    is_written: bool
    rows: int
    """How many rows were written, by the history of the run."""
    columns: tuple[str, ...]
    place: str
    dataset: str | None
    dataset_address: str | None
    digest: str | None
    """Of what was written."""
    selector: str | None
    """Which rows it takes; None for all."""
    written_how: str
    found: RowsPage
    filter_address: str
    """The same rows where they can be filtered and sorted."""
    reconciliation_address: str
    files: tuple[tuple[str, str], ...]
    """The formats in which what was written can be downloaded, with addresses."""
    first: str | None
    previous: str | None
    following: str | None


def output_query(step: OutputStep, after: str = "", offset: int = 0, trail: tuple[str, ...] = ()) -> RowsQuery:
    """The question to the trace whose answer is what an output has written."""
    return RowsQuery(step.seq, condition_of(step), columns=step.columns, after=after, offset=offset, trail=trail)


def condition_of(step: OutputStep) -> str:
    """Which rows of the working dataset an output takes."""
    selected = [] if step.selector is None else [f"({text_of(step.selector.tree)})"]
    return " AND ".join([*selected, *([] if step.include_deleted else ["_deleted = FALSE"])])


def output_step(trace: SeenTrace, seq: int) -> OutputStep:
    """An output of a run. Raises UserError NotAnOutput if the step is none."""
    for step in trace.plan.outputs:
        if step.seq == seq:
            return step
    listed = ", ".join(f'{each.seq} "{each.name}"' for each in trace.plan.outputs) or "none"
    raise UserError(NOT_AN_OUTPUT.anywhere(problem=f"step {seq} is not an output; outputs are {listed}"))


def output_page(run: Run, trace: SeenTrace, step: OutputStep, query: RowsQuery) -> OutputPage:
    """The page of an output."""
    told = next((each for each in run.steps if each.seq == step.seq), None)
    published = next((each for each in run.outputs if each["seq"] == step.seq), {})
    dataset = published.get("dataset")
    found = rows_page(trace, query)
    return OutputPage(
        seq=step.seq,
        name=step.name,
        is_written=told is not None and told.status is StepStatus.SUCCESS,
        rows=int(str(published.get("rows", 0))),
        columns=step.columns,
        place=str(published.get("path") or published.get("table") or step.destination.described),
        dataset=f"{dataset} v{published['dataset_version']}" if dataset else None,
        dataset_address=addresses.dataset(str(dataset)) if dataset else None,
        digest=None if told is None else _digest(told),
        selector=None if step.selector is None else step.selector.text,
        written_how=step.mode.replace("_", " "),
        found=found,
        filter_address=addresses.rows(trace.run_id, at=step.seq, where=query.where, columns=list(step.columns)),
        reconciliation_address=addresses.reconciliation(trace.run_id),
        files=tuple(
            (name, addresses.rows_file(trace.run_id, format_, output=step.seq)) for format_, name in words.FORMATS
        ),
        first=_turned(found.first, trace, step),
        previous=_turned(found.previous, trace, step),
        following=_turned(found.following, trace, step),
    )


def _digest(step: StepSnapshot) -> str | None:
    return next((each.sha256 for each in step.artifacts if each.kind == OUTPUT_KIND), None)


def _turned(address: str | None, trace: SeenTrace, step: OutputStep) -> str | None:
    """The address of a page of rows as one of this output."""
    if address is None:
        return None
    asked = parse_qs(urlsplit(address).query)
    return addresses.output(
        trace.run_id, step.seq, **{name: asked.get(name, []) for name in ("after", "offset", "trail")}
    )
