"""Documents as the OpenAPI description shows them. Answers are built by `app`; these say what is in them."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A JSON object. Later versions may add keys."""

    model_config = ConfigDict(extra="allow")


class Problem(Document):
    """What is wrong."""

    code: str
    """Stable: programs match on it."""
    message: str
    file: str | None
    line: int | None
    column: int | None
    hint: str | None


class ErrorDocument(Document):
    """The shape of every answer that reports an error."""

    error: Problem


class Listed(Document):
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


class RunPage(Document):
    """Runs, the newest first."""

    runs: list[Listed]
    has_more: bool
    next_cursor: str | None
    """Give it as `cursor` for the next page."""


class RunDocument(Document):
    """A run with its steps and outputs, as `clew show --json` gives it."""

    run_id: str
    status: str
    project: str
    project_version: str | None
    period: str
    steps: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    error: dict[str, Any] | None
