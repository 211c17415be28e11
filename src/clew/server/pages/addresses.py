"""The addresses of pages, for templates and view models. Each address is spelled in one place."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

Query = Mapping[str, object]


def overview(**query: object) -> str:
    """Where projects stand."""
    return _with("/overview", query)


def runs(**query: object) -> str:
    """The list of runs."""
    return _with("/runs", query)


def run(run_id: str) -> str:
    """A run."""
    return f"/runs/{_part(run_id)}"


def rerun(run_id: str) -> str:
    """Where a rerun of a run is requested."""
    return f"{run(run_id)}/rerun"


def rows(run_id: str, **query: object) -> str:
    """The working dataset of a run at a step."""
    return _with(f"{run(run_id)}/rows", query)


def column_values(run_id: str, column: str, **query: object) -> str:
    """Which values a column of a run has at a step."""
    return _with(f"{run(run_id)}/values", {"column": column, **query})


def condition(run_id: str, **query: object) -> str:
    """Whether a condition is valid, and what can stand at its end."""
    return _with(f"{run(run_id)}/condition", query)


def output(run_id: str, seq: int, **query: object) -> str:
    """What an output of a run has written."""
    return _with(f"{run(run_id)}/outputs/{seq}", query)


def row(run_id: str, row_id: str, **query: object) -> str:
    """The history of a row."""
    return _with(f"{run(run_id)}/rows/{_part(row_id)}", query)


def explanation(run_id: str, row_id: str, column: str, **query: object) -> str:
    """Why a value is what it is."""
    return _with(f"{run(run_id)}/explain", {"row": row_id, "column": column, **query})


def explained_rows(run_id: str, row_id: str, column: str, **query: object) -> str:
    """More of the rows behind a summary, for a script that adds them to the explanation."""
    return _with(f"{run(run_id)}/explain/rows", {"row": row_id, "column": column, **query})


def download(run_id: str, row_id: str, column: str, **query: object) -> str:
    """The same explanation as one file."""
    return _with(f"{run(run_id)}/explain.html", {"row": row_id, "column": column, **query})


def evidence(run_id: str, **query: object) -> str:
    """The evidence pack of a run, or of a value."""
    return _with(f"{run(run_id)}/evidence.zip", query)


def rows_file(run_id: str, format_: str, **query: object) -> str:
    """Rows of a run as a file."""
    return _with(f"/api/v1{run(run_id)}/download/rows", {"format": format_, **query})


def comparison_file(run_id: str, format_: str, **query: object) -> str:
    """The rows in which two runs differ as a file."""
    return _with(f"/api/v1{run(run_id)}/download/compare", {"format": format_, **query})


def capture_file(capture_id: str, format_: str) -> str:
    """The rows of a capture as a file."""
    return f"/api/v1{capture(capture_id)}/download?format={format_}"


def why_not(run_id: str, **query: object) -> str:
    """Why rows are not in an output."""
    return _with(f"{run(run_id)}/why-not", query)


def driver_log(run_id: str) -> str:
    """What the drivers of a run did and met."""
    return f"{run(run_id)}/log"


def reconciliation(run_id: str) -> str:
    """What came in and went out of a run."""
    return f"{run(run_id)}/reconciliation"


def quarantine(run_id: str) -> str:
    """The rows that a run kept apart."""
    return f"{run(run_id)}/quarantine"


def compare(run_id: str, **query: object) -> str:
    """In what another run differs from a run."""
    return _with(f"{run(run_id)}/compare", query)


def why_changed(run_id: str, **query: object) -> str:
    """Why a value of another run is not what it is in a run."""
    return _with(f"{run(run_id)}/why-changed", query)


def what_if(run_id: str, **query: object) -> str:
    """What would be different in a run."""
    return _with(f"{run(run_id)}/what-if", query)


def impact(run_id: str) -> str:
    """What a project as edited would change in a run."""
    return f"{run(run_id)}/impact"


def lineage(**query: object) -> str:
    """The graph of runs and datasets, or of the rows that a value was made from."""
    return _with("/lineage", query)


def as_picture(address: str) -> str:
    """The picture of a page as a file."""
    path, mark, query = address.partition("?")
    return f"{path}.svg{mark}{query}"


def audit(**query: object) -> str:
    """Who read what."""
    return _with("/audit", query)


def project(name: str, **query: object) -> str:
    """A project."""
    return _with(f"/projects/{_part(name)}", query)


def plan_picture(name: str) -> str:
    """The picture of a project's plan as a file."""
    return f"{project(name)}/plan.svg"


def dataset(name: str) -> str:
    """A dataset."""
    return f"/datasets/{_part(name)}"


def capture(capture_id: str, **query: object) -> str:
    """A capture."""
    return _with(f"/captures/{_part(capture_id)}", query)


def as_json(address: str) -> str:
    """The same page as JSON."""
    path, mark, query = address.partition("?")
    path = "/overview" if path == "/" else path
    return f"{path}.json{mark}{query}"


def _part(text: str) -> str:
    return quote(text, safe="")


def _with(path: str, query: Query) -> str:
    wanted = [
        (name, each)
        for name, value in query.items()
        if value not in (None, "")
        for each in (value if isinstance(value, list | tuple) else [value])
    ]
    return f"{path}?{urlencode(wanted)}" if wanted else path
