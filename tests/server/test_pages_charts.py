"""Pictures of graphs and plans as files, and charts of a project over time."""

import html
import re
from decimal import Decimal
from xml.etree import ElementTree

from clew.server.pages.drawing.graph import Graph, GraphNode, drawn
from clew.server.pages.drawing.picture_file import graph_file
from clew.server.pages.project_charts import HEIGHT, ChartPoint, chart
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served

SVG = "{http://www.w3.org/2000/svg}"


def test_pictures_are_files_that_other_programs_read(shared: Served) -> None:
    client = shared.client("auditor")
    run = {"run": shared.run_id, "column": "amount_usd"}
    trace = shared.workspace.find_run(shared.run_id).open_trace()
    row = trace.search('journal_id = "JE-00231"', limit=1).rows[0].row_id
    asked: tuple[tuple[str, dict[str, str]], ...] = (
        ("/lineage.svg", {}),
        ("/lineage.svg", {**run, "row": row}),
        ("/projects/gl-close/plan.svg", {}),
    )
    for address, query in asked:
        answer = client.get(address, params=query)
        assert answer.headers["content-type"] == "image/svg+xml"
        assert re.fullmatch(r'attachment; filename="[\w-]+\.svg"', answer.headers["content-disposition"])
        picture = ElementTree.fromstring(answer.text)
        assert len(picture.findall(f"{SVG}g")) >= 3
        assert "var(" not in answer.text
        assert "href" not in answer.text
    assert shared.client("viewer").get("/lineage.svg", params={**run, "row": row}).status_code == 403


def test_names_in_a_picture_stay_text() -> None:
    node = GraphNode(key="a", kind="run FAILED", title="<script>alert(1)</script>", subtitle="&")
    found = graph_file(drawn(Graph((node,), ())), "a < b")
    assert found.boxes[0].full == "<script>alert(1)</script>\n&"
    assert found.boxes[0].paint.stroke == "#a8261d"


def test_a_picture_of_five_hundred_boxes_is_drawn_with_more_runs_on_demand(shared: Served) -> None:
    page = as_page(shared.client("viewer"), "/lineage", {"runs": 250}).text
    assert "data-minimap" in page
    assert 'href="/lineage.svg?runs=250"' in page
    assert shared.client("viewer").get("/lineage", params={"runs": 251}).status_code == 422


def test_bars_fill_the_height_and_negative_ones_hang_from_zero() -> None:
    values = [Decimal(3), Decimal(-1), Decimal(0), Decimal("0.0001")]
    found = chart("Total", "period", [ChartPoint(str(n), value, f"{value}", None) for n, value in enumerate(values)])
    assert [bar.height for bar in found.bars] == [48, 16, 0, 1]
    assert [bar.y for bar in found.bars] == [0, found.zero, found.zero, found.zero - 1]
    assert all(0 <= bar.y <= bar.y + bar.height <= HEIGHT for bar in found.bars)
    assert found.described == "Total: 0: 3; 1: -1; 2: 0; 3: 0.0001"


def test_a_project_shows_its_results_and_runs_over_time(served: Served) -> None:
    client = served.client("viewer")
    assert 'aria-label="Over time"' not in as_page(client, "/projects/gl-close").text
    served.finish(served.starter.submit("gl-close", "2026-02").run_id)
    page = html.unescape(as_page(client, "/projects/gl-close").text)
    rows = re.search(r'aria-label="Rows written: 2026-01: ([\d,]+); 2026-02: ([\d,]+)"', page)
    assert rows
    assert re.search(r'aria-label="Duration of runs: 2026-01, [^"]+; 2026-02, ', page)
    assert f'<a href="/runs/{served.run_id}">2026-01</a>' in page
