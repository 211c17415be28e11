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
