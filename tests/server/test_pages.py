"""Pages as a browser and as a program ask for them."""

import html
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from clew.events import EVENT_TYPES
from clew.evidence import pack_verifier
from clew.server.pages.rendering import FOLDER, STATIC
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import MONTH, Served

PAGES = (
    "/overview",
    "/runs",
    "/runs/{run}",
    "/runs/{run}/rows",
    "/runs/{run}/rows/{row}",
    "/runs/{run}/explain?row={row}&column=total_usd",
    "/runs/{run}/why-not?where=line_number%20%3D%201",
    "/lineage",
    "/lineage?run={run}&row={row}&column=total_usd",
    "/projects",
    "/projects/gl-close",
    "/datasets",
    "/datasets/accounts",
    "/captures",
    "/operations",
)


def total_row(served: Served) -> str:
    where = 'row_kind = "total" AND account_type = "expense"'
    found = served.client("auditor").get(f"/runs/{served.run_id}/rows.json", params={"where": where})
    row_id: str = found.json()["rows"][0]["row_id"]
    return row_id


def filled(served: Served, path: str) -> str:
    return path.format(run=served.run_id, row=total_row(served) if "{row}" in path else "")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_html_for_people_and_json_for_programs(shared: Served, path: str) -> None:
    client, wanted = shared.client("admin"), filled(shared, path)
    page = as_page(client, wanted)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert page.text.count("<h1") == 1
    by_header = client.get(wanted, headers={"Accept": "application/json"})
    parts = urlsplit(wanted)
    by_name = as_page(client, f"{parts.path}.json?{parts.query}")
    assert by_header.json() == by_name.json()


def test_every_kind_of_link_leads_somewhere(shared: Served) -> None:
    client = shared.client("admin")
    kinds = dict[str, str]()
    for path in PAGES:
        page = as_page(client, filled(shared, path)).text
        for link in re.findall(r'(?:href|src)="(/[^"]*)"', page):
            kinds.setdefault(re.sub(r"[0-9a-f-]{8,}|=[^&]*", "", link), html.unescape(link))
    assert len(kinds) > 25
    for link in kinds.values():
        assert as_page(client, link).status_code in {200, 307}, link


def test_the_page_of_a_run_is_the_document_of_the_command(shared: Served) -> None:
    client = shared.client("viewer")
    assert client.get(f"/runs/{shared.run_id}.json").json() == client.get(f"/api/v1/runs/{shared.run_id}").json()


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_the_fragment_of_a_run_is_what_its_page_shows_to_the_same_person(shared: Served, role: str) -> None:
    client = shared.client(role)
    page, fragment = (as_page(client, f"/runs/{shared.run_id}{rest}") for rest in ("", "/fragment"))
    assert fragment.status_code == 200
    assert fragment.headers["cache-control"] == "no-store"
    assert fragment.text.startswith('<div id="run"')
    assert fragment.text.strip() in page.text


def test_a_viewer_sees_runs_and_is_offered_no_rows(shared: Served) -> None:
    client = shared.client("viewer")
    page = as_page(client, f"/runs/{shared.run_id}").text
    assert "/rows" not in page
    assert "data-signal" not in page
    assert 'href="/captures' not in page
    assert "job converted-lines" in page
    refused = as_page(client, f"/runs/{shared.run_id}/rows")
    assert refused.status_code == 403
    assert "Not allowed for your role" in refused.text


def test_an_operator_is_offered_what_the_role_may_send(shared: Served) -> None:
    page = as_page(shared.client("operator"), f"/runs/{shared.run_id}").text
    assert re.findall(r'data-signal="(\w+)"', page) == ["RETRY_RUN"]


def test_rows_are_filtered_sorted_and_shown_with_the_columns_that_were_chosen(shared: Served) -> None:
    client = shared.client("auditor")
    query = {"where": 'currency = "EUR"', "sort": "amount_usd", "direction": "descending", "columns": "amount_usd"}
    page = as_page(client, f"/runs/{shared.run_id}/rows", query).text
    assert 'aria-sort="descending"' in page
    assert ">journal_id" not in page.partition("<thead>")[2].partition("</thead>")[0]
    shown = [float(text.replace(",", "")) for text in re.findall(r'tabindex="-1"[^>]*>(-?[\d,.]+)</a>', page)]
    assert shown == sorted(shown, reverse=True)
    assert len(shown) == 50
    following = re.search(r'href="([^"]+)" rel="next"', page)
    assert following
    behind = as_page(client, following[1].replace("&amp;", "&")).text
    assert "First page" in behind


def test_cells_that_a_step_changed_are_marked_with_what_they_were(shared: Served) -> None:
    where = 'journal_id = "JE-00231" AND line_number = 2'
    page = as_page(shared.client("auditor"), f"/runs/{shared.run_id}/rows", {"at": 20, "where": where}).text
    changed = re.findall(r'<td class=" changed"><a [^>]*><del>(\w+)<', page)
    assert changed == ["5210", "operating"]


def test_a_condition_that_is_wrong_is_shown_with_its_place(shared: Served) -> None:
    page = as_page(shared.client("auditor"), f"/runs/{shared.run_id}/rows", {"where": "amount_lcoal > 1"})
    assert page.status_code == 200
    assert "did you mean &#34;amount_local&#34;" in page.text
    assert "^^^^" in page.text


def test_a_row_that_does_not_exist_yet_says_when_it_comes(shared: Served) -> None:
    page = as_page(shared.client("auditor"), f"/runs/{shared.run_id}/rows/{total_row(shared)}", {"at": 10}).text
    assert "was created in step 40" in page


def test_why_not_tells_which_step_deleted_a_row(shared: Served) -> None:
    query = {"where": 'journal_id = "JE-00099"'}
    page = as_page(shared.client("auditor"), f"/runs/{shared.run_id}/why-not", query).text
    assert "deleted in step 30" in page
    assert "CONTAINS(transactions.description, &#34;TEST&#34;)" in page


def test_why_not_tells_where_a_row_is_that_was_never_loaded(shared: Served) -> None:
    query = {"where": 'journal_id = "JE-01171"'}
    client = shared.client("auditor")
    page = as_page(client, f"/runs/{shared.run_id}/why-not", query).text
    place = "journal-lines, journal/2026-03/part-00001.parquet row 1"
    assert f"{place}: the rule &#34;one folder of Parquet parts per month, since March&#34; reads this file" in page
    answer = client.get(f"/api/v1/runs/{shared.run_id}/why-not", params=query)
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers
    assert answer.json()["never_loaded"]["rules"][0]["reason"] is None


def test_reading_rows_is_kept_on_record(served: Served) -> None:
    row = total_row(served)
    auditor = served.client("auditor")
    as_page(auditor, f"/runs/{served.run_id}/explain", {"row": row, "column": "total_usd"})
    as_page(auditor, f"/runs/{served.run_id}/explain.html", {"row": row, "column": "total_usd"})
    as_page(auditor, "/lineage", {"run": served.run_id, "row": row, "column": "total_usd"})
    records = served.client("admin").get("/api/v1/audit").json()["records"]
    subjects = [record["subject"] for record in records if record["subject"] != "token"]
    assert subjects[:3] == ["lineage", "explanation", "explanation"]


def _tree(page: str) -> str:
    """What a page says in its tree, without the links that lead on."""
    tree = page.partition('id="tree">')[2].partition("</main>")[0]
    leads_on = r" · <a [^>]*>show [^<]*</a>|<a [^>]*>What if [^<]*</a>"
    return re.sub(r"\s+", " ", re.sub(f"{leads_on}|<[^>]*>", "", tree)).strip()


def test_an_explanation_in_a_file_is_the_tree_of_the_page_and_needs_nothing_else(shared: Served) -> None:
    auditor = shared.client("auditor")
    where: dict[str, str | int] = {"where": 'row_kind = "total"', "limit": 1}
    row = auditor.get(f"/api/v1/runs/{shared.run_id}/trace/rows", params=where).json()["rows"][0]["row_id"]
    query = {"row": row, "column": "total_usd"}
    page = as_page(auditor, f"/runs/{shared.run_id}/explain", query).text
    answer = as_page(auditor, f"/runs/{shared.run_id}/explain.html", query)
    assert answer.headers["content-disposition"] == f'attachment; filename="explanation-{shared.run_id[:8]}.html"'
    assert _tree(answer.text) == _tree(page)
    assert "more rows" in _tree(page)
    assert answer.text.count("</style") == 1
    assert answer.text.count("<details") == page.count("<details") > 5
    for outside in ("<script", "<a ", "<link", "href=", "src=", "url(", "@import"):
        assert outside not in answer.text


def explained_in_full(shared: Served) -> str:
    """The page that explains the total of expenses with all its rows."""
    query = {"row": total_row(shared), "column": "total_usd", "top": "500"}
    return as_page(shared.client("auditor"), f"/runs/{shared.run_id}/explain", query).text


def test_every_row_that_an_explanation_shows_is_explained(shared: Served) -> None:
    page = explained_in_full(shared)
    assert page.count('class="line share-line"') == 484
    assert "not explained here" not in page
    checked = re.search(r"([\d,]+) expressions on this page recomputed: all equal *</span>", page)
    assert checked
    assert int(checked[1].replace(",", "")) == page.count("recomputed, equal") >= 484


def test_the_rows_behind_a_total_come_piece_by_piece_and_are_those_of_the_whole_page(shared: Served) -> None:
    whole = explained_in_full(shared)
    client, asked = shared.client("auditor"), {"row": total_row(shared), "column": "total_usd"}
    piece = as_page(client, f"/runs/{shared.run_id}/explain", asked).text
    so_far = {each: _rows_shown(piece)[each] for each in ("amounts", "percents", "bars")}
    while (rest := re.search(r'class="note rest" data-shown="(\d+)"', piece)) is not None:
        more = re.search(r'data-more="([^"]+)"', piece)
        verdict = re.search(r'data-verdict="([\d.]+)"', piece)
        assert more
        assert verdict
        assert int(rest[1]) == len(so_far["amounts"])
        ends = f"&skip={rest[1]}&top={int(rest[1]) + 100}&verdict={verdict[1]}"
        piece = as_page(client, html.unescape(more[1]) + ends).text
        for each, found in _rows_shown(piece).items():
            so_far[each] += found
    assert so_far == _rows_shown(whole)
    said = re.compile(r"[\d,]+ expressions on this page")
    assert said.findall(piece) == said.findall(whole) != []


def test_numbers_that_no_script_sends_only_change_how_bars_look(shared: Served) -> None:
    client, asked = shared.client("auditor"), {"row": total_row(shared), "column": "total_usd", "skip": "5", "top": "7"}
    plain = as_page(client, f"/runs/{shared.run_id}/explain/rows", asked).text
    for wrong in ("1e999999", "NaN", "Infinity", "-1", "x"):
        page = as_page(client, f"/runs/{shared.run_id}/explain/rows", {**asked, "scale": wrong, "share": wrong}).text
        assert _rows_shown(page)["amounts"] == _rows_shown(plain)["amounts"], wrong
        assert len(page) < len(plain) + 2_000
    for wrong in ("1.2.3", "x", "9" * 59):
        page = as_page(client, f"/runs/{shared.run_id}/explain/rows", {**asked, "verdict": wrong}).text
        assert _rows_shown(page)["amounts"] == _rows_shown(plain)["amounts"], wrong


def _rows_shown(page: str) -> dict[str, list[str]]:
    return {
        "amounts": re.findall(r'share-line"><span class="amount">(.*?)</span>', page),
        "percents": re.findall(r'<span class="percent">(.*?)</span>', page),
        "bars": re.findall(r'<rect class="share[^>]*width="([^"]+)"', page),
    }


def test_an_explanation_says_where_it_stops_and_leads_on(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.explain.explaining._NODES_PER_ROW", 0)
    page = explained_in_full(shared)
    stops = re.findall(r'<a href="([^"]+)">explain ', page)
    assert len(stops) == page.count("not explained here</span>") > 100
    assert f"all equal, but {len(stops)} values are not explained here: each has its link" in page
    client = shared.client("auditor")
    further = as_page(client, html.unescape(stops[-1])).text
    assert "not explained here" not in further
    assert re.search(r"all equal|taken as it was", further)
    document = client.get(
        f"/runs/{shared.run_id}/explain.json", params={"row": total_row(shared), "column": "total_usd"}
    )
    assert '"cut"' not in document.text


def test_changes_between_versions_are_shown(served: Served) -> None:
    folder = served.workspace.root
    project = folder / "projects" / "gl-close.yaml"
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace('"5290"', '"5291"'), encoding="utf-8")
    served.read_files()
    client = served.client("viewer")
    page = as_page(client, "/projects/gl-close").text
    assert "modified, version 1" in page
    compared = as_page(client, "/projects/gl-close", {"old": "1", "new": "file"}).text
    assert re.search(r'class="line added">.*5291', compared)
    assert re.search(r'class="line removed">.*5290', compared)
    project.write_text(
        text.replace("STARTSWITH(transactions.cost_center", "STARTSWITH(transactions.cost_centre"), encoding="utf-8"
    )
    served.read_files()
    assert "does not compile" in as_page(client, "/projects").text
    broken = as_page(client, "/projects/gl-close")
    assert broken.status_code == 200
    assert "projects/gl-close.yaml:" in broken.text


def test_who_is_not_signed_in_is_asked_to_and_comes_back(shared: Served) -> None:
    client = shared.client()
    asked = as_page(client, f"/runs/{shared.run_id}")
    assert asked.status_code == 303
    assert asked.headers["location"] == f"/login?next=%2Fruns%2F{shared.run_id}"
    form = as_page(client, asked.headers["location"]).text
    assert f'name="next" value="/runs/{shared.run_id}"' in form
    own = {"Origin": "http://127.0.0.1:8765", "Accept": "text/html"}
    wrong = client.post("/login", data={"token": "wrong"}, headers=own)
    assert wrong.status_code == 401
    assert 'role="alert"' in wrong.text
    right = client.post("/login", data={"token": shared.token("viewer"), "next": "/lineage"}, headers=own)
    assert (right.status_code, right.headers["location"]) == (303, "/lineage")
    assert as_page(client, "/lineage").status_code == 200
    assert as_page(client, "/login").headers["location"] == "/"


def test_nobody_is_sent_to_another_site_after_signing_in(shared: Served) -> None:
    page = as_page(shared.client(), "/login", {"next": "https://elsewhere.example/"}).text
    assert 'name="next" value="/"' in page


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/runs/nothing", 404, "RunNotFound"),
        ("/nowhere", 404, "NoSuchAddress"),
        ("/projects/nothing", 404, "UnknownProject"),
        ("/datasets/nothing", 404, "NoSuchDataset"),
        ("/captures/nothing", 404, "CaptureNotFound"),
        ("/projects/gl-close?old=x&new=file", 422, "InvalidRequest"),
    ],
)
def test_errors_are_pages_in_the_same_voice(shared: Served, path: str, status: int, word: str) -> None:
    answer = as_page(shared.client("admin"), path)
    assert answer.status_code == status
    assert word in answer.text
    assert answer.text.startswith("<!doctype html>")


def test_a_run_that_is_under_way_has_no_rows_yet(served: Served) -> None:
    run_id = served.starter.submit("gl-close", MONTH).run_id
    client = served.client("auditor")
    assert "No worker has taken this run yet" in as_page(client, f"/runs/{run_id}").text
    refused = as_page(client, f"/runs/{run_id}/rows")
    assert refused.status_code == 409
    assert "Not possible now" in refused.text


def test_styles_and_scripts_may_be_kept_and_pages_may_not(shared: Served) -> None:
    client = shared.client("viewer")
    page = as_page(client, "/runs")
    assert page.headers["cache-control"] == "no-store"
    style = re.search(r'href="(/static/clew.css\?v=\w+)"', page.text)
    assert style
    assert "immutable" in client.get(style[1]).headers["cache-control"]
    assert client.get("/static/../rendering.py").status_code == 404


def test_templates_put_nothing_into_a_page_unescaped_and_ask_no_other_server() -> None:
    files = [*(FOLDER / "templates").iterdir(), *STATIC.iterdir()]
    assert len(files) > 20
    for file in files:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://", text), file
        if file.suffix == ".html":
            assert not re.search(r"\|\s*safe|autoescape|Markup|\sstyle=|\son[a-z]+=|<style|javascript:", text), file
            assert not re.search(r"<script(?![^>]*src=)", text), file
        if file.suffix == ".js":
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), file


def test_scripts_know_nothing_about_events_but_that_they_come() -> None:
    """What an event means stands in one table, in `clew.events.meanings`; pages get what follows from it."""
    scripts = list(STATIC.glob("*.js"))
    assert scripts
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert [cls.NAME for cls in EVENT_TYPES if cls.NAME in text] == [], script
        assert not re.search(r"event_type|event_data|emitted_at", text), script


def test_a_broken_template_is_an_error_and_no_empty_page() -> None:
    from jinja2 import UndefinedError

    from clew.server.pages.rendering import Templates

    with pytest.raises(UndefinedError):
        Templates().render("login.html", problem=None)


def test_lineage_as_data_has_runs_and_datasets(shared: Served) -> None:
    graph = json.loads(shared.client("viewer").get("/lineage.json").text)
    kinds = {node["kind"].partition(" ")[0] for node in graph["nodes"]}
    assert {"run", "source", "place"} <= kinds
    keys = {node["key"] for node in graph["nodes"]}
    assert all(edge["from"] in keys and edge["to"] in keys for edge in graph["edges"])


def test_a_run_is_asked_for_on_the_page_of_its_project_once_however_often_it_is_sent(served: Served) -> None:
    client = served.browser()
    page = as_page(client, "/projects/gl-close").text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)"', page.partition("/runs")[2]))
    own = {"Origin": "http://127.0.0.1:8765", "Accept": "text/html"}
    sent = {**fields, "period": "2026-02"}
    first = client.post("/projects/gl-close/runs", data=sent, headers=own)
    assert first.status_code == 303
    assert (
        client.post("/projects/gl-close/runs", data=sent, headers=own).headers["location"] == first.headers["location"]
    )
    assert "pending" in as_page(client, first.headers["location"]).text
    unknown = client.post("/projects/gl-close/runs", data={**sent, "period": "1066-10"}, headers=own)
    assert "UnknownPeriod" in unknown.text
    forged = client.post("/projects/gl-close/runs", data={**sent, "csrf_token": "x"}, headers=own)
    assert forged.status_code == 403
    assert "Run for period" not in as_page(served.client("viewer"), "/projects/gl-close").text


def test_a_trace_that_nobody_knows_is_not_found(shared: Served) -> None:
    answer = as_page(shared.client("auditor"), "/lineage", {"trace": 12345})
    assert answer.status_code == 404
    assert "TraceNotFound" in answer.text
    assert as_page(shared.client("viewer"), "/lineage", {"trace": 12345}).status_code == 403


def test_buttons_give_signed_packs_of_the_run_and_of_the_value(shared: Served, tmp_path: Path) -> None:
    client, row = shared.client("auditor"), total_row(shared)
    pages = (f"/runs/{shared.run_id}", f"/runs/{shared.run_id}/explain?row={row}&column=total_usd")
    explained = list[int]()
    for page in pages:
        [address] = re.findall(r'href="([^"]*/evidence\.zip[^"]*)"', as_page(client, page).text)
        answer = client.get(html.unescape(address))
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
        (tmp_path / "pack.zip").write_bytes(answer.content)
        report = pack_verifier.verify(tmp_path / "pack.zip")
        assert report.findings == []
        explained.append(report.checked.get("explanations", 0))
    assert explained == [0, 1]
    assert "evidence.zip" not in as_page(shared.client("viewer"), pages[0]).text
    assert shared.client("viewer").get(f"/api/v1/runs/{shared.run_id}/evidence").status_code == 403
    wrong = client.get(f"/api/v1/runs/{shared.run_id}/evidence", params={"column": "total_usd"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "InvalidRequest")
    found = shared.client("admin").get("/api/v1/audit", params={"subject_id": shared.run_id}).json()
    details = [each["detail"] for each in found["records"]]
    packs = [each for each in details if each.startswith(f"evidence pack: row {row}, column total_usd, at 60; ")]
    assert re.search(r"returned \d+ rows of total_usd, ", packs[0])
