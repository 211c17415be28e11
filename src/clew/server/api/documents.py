"""Documents as the OpenAPI description shows them. Answers are built by `app`; these say what is in them."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Json = dict[str, Any]


class ApiDocument(BaseModel):
    """A JSON object. Later versions may add keys."""

    model_config = ConfigDict(extra="allow")


class Problem(ApiDocument):
    """What is wrong. Programs match on the code."""

    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    hint: str | None


class ErrorDocument(ApiDocument):
    """The shape of every answer that reports an error."""

    error: Problem


class Listed(ApiDocument):
    """A run as lists show it."""

    run_id: str
    status: str
    project: str
    project_version: str | None
    period: str
    environment: str
    request_id: str
    requested_by: str | None
    retry_of: str | None
    created_at: str
    started_at: str | None
    completed_at: str | None


class RunListDocument(ApiDocument):
    """Runs, the newest first. `next_cursor` given as `cursor` leads to the next page."""

    runs: list[Listed]
    has_more: bool
    next_cursor: str | None


class RunDocument(ApiDocument):
    """A run with its steps and outputs, as `clew show --json` gives it."""

    run_id: str
    status: str
    project: str
    project_version: str | None
    period: str
    steps: list[Json]
    outputs: list[Json]
    error: Json | None


class RunWish(BaseModel):
    """What to run. Sent again with the same request id, it is the same run."""

    model_config = ConfigDict(extra="forbid")

    project: str = Field(min_length=1, max_length=255)
    period: str = Field(min_length=1, max_length=255)
    request_id: str | None = Field(default=None, min_length=1, max_length=255)
    captures: list[str | Json] = Field(
        default=[],
        max_length=100,
        description="Breakpoints at which rows are kept: NAME, NAME=MODE, or all details of a capture.",
    )


class GapDocument(ApiDocument):
    """Events that are missing: from the one that was expected to the one before the first that is there."""

    expected_seq: int
    found_seq: int


class SnapshotDocument(ApiDocument):
    """Where a run stands. A stale one may say less than what has happened."""

    run_id: str
    status: str
    last_event_seq: int
    steps: list[Json]
    stale: bool
    gap: GapDocument | None


class EventsDocument(ApiDocument):
    """A page of the history of a run, up to the first event that is missing."""

    run_id: str
    status: str
    last_seq: int
    stale: bool
    gap: GapDocument | None
    events: list[Json]


class VerificationDocument(ApiDocument):
    """Whether the history is what was stored."""

    run_id: str
    intact: bool
    verified: int
    unchained: int
    breaks: list[Json]


class SignalWish(BaseModel):
    """What a run is told. Sent again with the same signal id, it is the same signal."""

    model_config = ConfigDict(extra="forbid")

    signal: str = Field(examples=["PAUSE", "RETRY_STEP"], max_length=64)
    step: int | None = Field(default=None, ge=0, description="For RETRY_STEP and SKIP_STEP; 0 is loading.")
    reason: str | None = Field(default=None, max_length=10_000)
    signal_id: str | None = Field(default=None, min_length=1, max_length=200)


class SignalDocument(ApiDocument):
    """What became of a signal."""

    run_id: str
    signal: str
    accepted: bool
    refusal: str | None
    detail: str | None
    new_run_id: str | None
    status: str


class TraceDocument(ApiDocument):
    """What each step did, in numbers."""

    run_id: str
    steps: list[Json]


class HistoryDocument(ApiDocument):
    """What happened to a row, step by step."""

    row_id: str
    history: list[Json]


class StateDocument(ApiDocument):
    """A row as it was after a step."""

    row_id: str
    at: int
    row_at_step: Json | None


class RowsDocument(ApiDocument):
    """Rows after a step. The last row id given as `after` leads to the next page."""

    at: int
    rows: list[Json]
    has_more: bool


class StepRowsDocument(ApiDocument):
    """What a step did to each row. The last row id given as `after` leads to the next page."""

    operation_seq: int
    rows: list[Json]
    has_more: bool


class ExplanationDocument(ApiDocument):
    """Why a value is what it is: a tree."""

    run_id: str
    row_id: str
    column: str


class WhyNotDocument(ApiDocument):
    """What became of loaded rows."""

    run_id: str
    where: str
    rows: list[Json]
    has_more: bool
    never_loaded: Json | None = None


class LineageDocument(ApiDocument):
    """A graph of traces."""

    trace_id: int
    direction: str
    complete: bool
    nodes: list[Json]
    links: list[Json]


class CapturesDocument(ApiDocument):
    """Captures, the newest first."""

    captures: list[Json]


class CaptureDocument(ApiDocument):
    """A capture; with manifest and statistics once it is over."""

    capture_id: str
    breakpoint: str
    status: str
    run_id: str


class CaptureRowsDocument(ApiDocument):
    """Rows of a capture."""

    capture_id: str
    breakpoint: str
    rows: list[Json]


class CaptureDiffDocument(ApiDocument):
    """In what two captures differ."""


class ProjectsDocument(ApiDocument):
    """All projects."""

    projects: list[Json]


class ProjectDocument(ApiDocument):
    """A project with its versions, the newest first."""

    project: str
    name: str
    state: str
    versions: list[Json]


class ProjectVersionDocument(ApiDocument):
    """A version of a project, and who made it what it is."""

    project: str
    version: int
    status: str
    digest: str
    activated_at: str
    activated_by: str
    deactivated_at: str | None
    deactivated_by: str | None


class VersionDocument(ApiDocument):
    """A frozen definition of a project."""

    project: str
    version: int
    digest: str
    definition: str
    plan: Json


class DatasetsDocument(ApiDocument):
    """All datasets."""

    datasets: list[Json]


class DatasetDocument(ApiDocument):
    """A dataset with its columns and versions."""

    dataset: str
    name: str
    columns: list[Json]
    versions: list[Json]


class DeadLettersDocument(ApiDocument):
    """Events that an event bus did not take."""

    dead_letters: list[Json]


class ReplayedDocument(ApiDocument):
    """How many events will be sent again."""

    replayed: int


class AccessDocument(ApiDocument):
    """Who has read the values of rows or changed what runs, the newest first.

    The last id given as `before` leads to the next page.
    """

    records: list[Json]
    has_more: bool


class CallerDocument(ApiDocument):
    """Who the server takes the caller for."""

    name: str
    role: str
    tenant: str
    environment: str
    permissions: list[str]


class StatusDocument(ApiDocument):
    """A word."""

    status: str
