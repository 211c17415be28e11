"""Pages as documentation: what a project does, and what a dataset is."""

from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served


def test_the_page_of_a_project_tells_what_each_operation_does(shared: Served) -> None:
    text = as_page(shared.client("viewer"), "/projects/gl-close").text
    plan = shared.workspace.plan("gl-close")
    places = [text.index(f'id="step-{step.seq}"') for step in plan.steps]
    assert places == sorted(places)
    assert "Project travel belongs to the project, not to operations." in text
    assert "from the fragment" in text
    assert "SUM(transactions.amount_usd)" in text
    assert 'href="/datasets/fx-rates"' in text
    assert "The last result is of 2026-01" in text
    assert f'href="/runs/{shared.run_id}"' in text
    assert "Drop test entries" in text
    for name in ("drop-test-entries", "totals-by-type"):
        title = next(
            each.name for each in shared.workspace.loaded.workspace.scenarios if each.file.endswith(f"{name}.yaml")
        )
        assert title in text


def test_the_page_of_a_dataset_tells_who_produces_and_who_reads_it(shared: Served) -> None:
    client = shared.client("viewer")
    closed = as_page(client, "/datasets/accounts").text
    assert "the data comes from outside" in closed
    assert 'href="/projects/gl-close"' in closed
    assert 'class="tag">key</span>' in closed
    lines = as_page(client, "/datasets/journal-lines").text
    assert "its input" in lines
    assert "rows belong to periods" in lines


def test_the_page_of_a_dataset_shows_its_first_rows_to_those_who_may_read_them(served: Served) -> None:
    """Also those of a dataset that is only joined; personal columns as the role sees them; and it is on record."""
    seen = as_page(served.client("auditor"), "/datasets/fx-rates").text
    assert "The first rows that were read for 2026-01" in seen
    assert ">1.092000</td>" in seen
    assert "Preview" not in as_page(served.client("viewer"), "/datasets/fx-rates").text
    lines = as_page(served.client("auditor"), "/datasets/journal-lines").text
    table = lines[lines.index("First rows") :]
    assert "JE-00001" in table
    assert "user-" not in table
    assert "user-" in as_page(served.client("admin"), "/datasets/journal-lines").text[lines.index("First rows") :]
    [record] = [
        each["detail"]
        for each in served.client("admin").get("/api/v1/audit", params={"limit": 100}).json()["records"]
        if "fx-rates" in each["detail"]
    ]
    assert record.startswith("first rows of fx-rates; returned 7 rows of from_currency, to_currency, rate_type, rate")
