"""Documents as the OpenAPI description shows them. `api` builds the answers; these models describe them."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Json = dict[str, Any]


class ApiDocument(BaseModel):
    """A JSON object. Later versions may add keys."""

    model_config = ConfigDict(extra="allow")


class Problem(ApiDocument):
    """What is wrong. Programs should match on the code."""

    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    hint: str | None


class ErrorDocument(ApiDocument):
    """The body of every error response."""

    error: Problem


class Listed(ApiDocument):
    """A run in a list."""

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
    """Runs, newest first. For the next page, pass `next_cursor` as `cursor`."""

    runs: list[Listed]
    has_more: bool
    next_cursor: str | None


class RunDocument(ApiDocument):
    """A run with its steps and outputs, as `clew show --json` prints it."""

    run_id: str
    status: str
    project: str
    project_version: str | None
    period: str
    steps: list[Json]
    outputs: list[Json]
    error: Json | None
    resolver_snapshots: list[Json] = Field(
        description="Every dataset that the run read: its version, and the resolver with its version."
    )
    verification: Json | None = Field(
        description="The last verification: when, by whom, and whether everything was as it was written."
    )


class RunWish(BaseModel):
    """What to run. Sending it again with the same request id returns the same run."""

    model_config = ConfigDict(extra="forbid")

    project: str = Field(min_length=1, max_length=255)
    period: str = Field(min_length=1, max_length=255)
    request_id: str | None = Field(default=None, min_length=1, max_length=255)
    captures: list[str | Json] = Field(
        default=[],
        max_length=100,
        description="Breakpoints to capture: NAME, NAME=MODE, or an object with all details of a capture.",
    )
    parameters: dict[str, str | bool | int | float] = Field(
        default={}, max_length=100, description="Values of parameters of the project, by name."
    )
    with_current_definitions: bool = Field(
        default=False, description="Activate the files of an active project first, if they have changed."
    )
    as_of: str | None = Field(
        default=None,
        min_length=1,
        max_length=40,
        description="A time: run the version of the project on the data that were known then, into the sandbox.",
    )


class RerunWish(BaseModel):
    """How to repeat a run. Sending it again with the same request id returns the same run."""

    model_config = ConfigDict(extra="forbid")

    changed_inputs: bool = Field(
        default=False, description="Look at the sources again, and read those that have changed."
    )
    parameters: dict[str, str | bool | int | float] = Field(
        default={}, max_length=100, description="Values of parameters in place of those of the run, by name."
    )
    request_id: str | None = Field(default=None, min_length=1, max_length=255)


class GapDocument(ApiDocument):
    """Missing events: from the expected one to the last one before the next that is present."""

    expected_seq: int
    found_seq: int


class SnapshotDocument(ApiDocument):
    """The state of a run. A stale snapshot may lack the latest events."""

    run_id: str
    status: str
    last_event_seq: int
    steps: list[Json]
    stale: bool
    gap: GapDocument | None


class EventsDocument(ApiDocument):
    """A page of the history of a run, up to the first missing event."""

    run_id: str
    status: str
    last_seq: int
    stale: bool
    gap: GapDocument | None
    events: list[Json]


class VerificationDocument(ApiDocument):
    """Whether the history is unaltered."""

    run_id: str
    intact: bool
    verified: int
    unchained: int
    breaks: list[Json]


class SignalWish(BaseModel):
    """A signal to a run. Sending it again with the same signal id has no further effect."""

    model_config = ConfigDict(extra="forbid")

    signal: str = Field(examples=["PAUSE", "RETRY_STEP"], max_length=64)
    step: int | None = Field(default=None, ge=0, description="For RETRY_STEP and SKIP_STEP; 0 is the load step.")
    reason: str | None = Field(default=None, max_length=10_000)
    signal_id: str | None = Field(default=None, min_length=1, max_length=200)
    with_current_definitions: bool = Field(
        default=False,
        description="For RETRY_RUN: use the files as they are now; those of an active project become its next version.",
    )


class SignalDocument(ApiDocument):
    """The decision on a signal."""

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
    """Rows after a step. For the next page, pass the last row id as `after`."""

    at: int
    rows: list[Json]
    has_more: bool


class TraceRecordsDocument(ApiDocument):
    """Trace records. For the next page, pass `next` as `after`."""

    run_id: str
    records: list[Json]
    has_more: bool
    next: str | None


class StepRowsDocument(ApiDocument):
    """What a step did to each row. For the next page, pass the last row id as `after`."""

    run_id: str
    operation_seq: int
    rows: list[Json]
    has_more: bool


class ExplanationDocument(ApiDocument):
    """Why a value is what it is: a tree."""

    run_id: str
    row_id: str
    column: str


class WhyNotDocument(ApiDocument):
    """What happened to loaded rows."""

    run_id: str
    where: str
    rows: list[Json]
    has_more: bool
    never_loaded: Json | None = None


class QuarantineDocument(ApiDocument):
    """The rows that a run did not load, with file, line, column, value and reason."""

    run_id: str
    rows: list[Json]


class ReconciliationDocument(ApiDocument):
    """For each output, what came in and what went out, in rows and control totals."""

    run_id: str
    ties: bool
    outputs: list[Json]


class ChecksDocument(ApiDocument):
    """What the checks of a run found."""

    run_id: str
    passed: bool
    checks: list[Json]


class ComparisonDocument(ApiDocument):
    """In what a run differs from another: counts, totals, and a page of the rows that differ."""

    run_a: str
    run_b: str
    rows_a: int
    rows_b: int
    only_in_a: int
    only_in_b: int
    changed: int
    same: int
    columns: list[Json]
    rows: list[Json]
    has_more: bool
    next_offset: int | None


class ChangeBridgeDocument(ApiDocument):
    """Why a value changed: causes that add up to the difference."""

    run_a: str
    run_b: str
    column: str
    value_a: str
    value_b: str
    difference: str
    mode: str
    causes: list[Json]


class WhatIfDocument(ApiDocument):
    """What would be different in a run: the totals that move, and a page of the rows that would differ."""

    run_id: str
    supposed: list[str]
    rows_before: int
    rows_after: int
    changed: int
    gone: int
    new: int
    columns: list[Json]
    rows: list[Json]
    has_more: bool
    next_offset: int | None


class PlanImpactDocument(ApiDocument):
    """What an edited project would have made of a run: the steps that differ, and what would move in each output."""

    run_id: str
    project: str
    period: str
    is_same: bool
    reused: int
    steps: list[Json]
    outputs: list[Json]
    controls: list[str]
    checks: list[Json]
    failed: list[str]


class SensitivityDocument(ApiDocument):
    """The values of reference data that a total rests on, those with the largest effect first."""

    run_id: str
    column: str
    effects: list[Json]
    tried: int
    not_tried: int
    not_looked_up: int
    where: str | None


class LineageDocument(ApiDocument):
    """A graph of trace ids."""

    trace_id: int
    direction: str
    complete: bool
    nodes: list[Json]
    links: list[Json]


class CapturesDocument(ApiDocument):
    """Captures, newest first."""

    captures: list[Json]


class CaptureDocument(ApiDocument):
    """A capture; with its manifest and statistics once it is finished."""

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
    """The differences between two captures."""


class OverviewDocument(ApiDocument):
    """Where each project stands in each period, the newest period first."""

    level: str | None
    levels: list[str]
    periods: list[str]
    newer: str | None
    older: str | None
    counts: dict[str, int]
    projects: list[Json]
    projects_left_out: int


class SearchDocument(ApiDocument):
    """What was found, and how many results were searched for rows."""

    text: str
    hits: list[Json]
    looked_at: int
    not_looked_at: int
    notes: list[str]


class ProjectsDocument(ApiDocument):
    """All projects."""

    projects: list[Json]


class ProjectDocument(ApiDocument):
    """A project with its versions, newest first."""

    project: str
    name: str
    state: str
    versions: list[Json]


class ProjectVersionDocument(ApiDocument):
    """A version of a project, and who activated or deactivated it."""

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
    """Events that an event bus rejected."""

    dead_letters: list[Json]


class ReplayedDocument(ApiDocument):
    """The number of events that will be sent again."""

    replayed: int


class AccessDocument(ApiDocument):
    """Access records, newest first: who read values of rows, or changed which version of a project runs.

    For the next page, pass the last id as `before`.
    """

    records: list[Json]
    has_more: bool


class CallerDocument(ApiDocument):
    """The caller as the server identified them."""

    name: str
    role: str
    tenant: str
    environment: str
    permissions: list[str]


class StatusDocument(ApiDocument):
    """The status, as one word."""

    status: str


class NodeDocument(ApiDocument):
    """The last lease of a node id. Timestamps in its trace ids lie in [first_ms, reserved_until_ms)."""

    node_id: int
    term: int
    status: str
    host: str
    process_id: int
    start_time_ms: int
    granted_at_ms: int
    expires_at_ms: int
    first_ms: int
    reserved_until_ms: int
    ended_at_ms: int | None


class NodesDocument(ApiDocument):
    """Node ids."""

    nodes: list[NodeDocument]
