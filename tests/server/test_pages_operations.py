"""What operators see: what each run does or waits for, and captures that are asked for when a run is started."""

import html
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

from clew.api.work_in_progress import Environs, waits_for
from clew.captures.requests import requests_in
from clew.definitions import CaptureMode
from clew.runs.clock import utc_now
from clew.runs.limits import Load
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served
from tests.server.test_pages_in_a_browser import Gate, drive, in_background


def queue(served: Served) -> dict[str, dict[str, Any]]:
    """What each run that has not ended does, by its id."""
    document = served.client("viewer").get("/operations.json").json()
    return {run["run_id"]: run for run in document["queue"]["runs"]}


def test_the_queue_says_what_each_run_does_or_waits_for(served: Served) -> None:
    first, second = (served.starter.submit("gl-close", "2026-02").run_id for _ in range(2))
    assert queue(served)[first]["waits_for"] == "no worker has taken it yet"
    gate = Gate()
    served.engine.during["10"] = gate
    driving = in_background(lambda: drive(served, first))
    try:
        assert gate.reached.wait(120)
        doing = queue(served)
        page = as_page(served.client("viewer"), "/operations").text
    finally:
        gate.opened.set()
        driving.join(120)
    assert doing[first]["step"].startswith("10 ")
    assert doing[first]["waits_for"] is None
    assert doing[second]["waits_for"] == "another run of its project and period is in progress"
    assert doing[second]["behind"] == first
    assert "alive: last heard from" in page
    assert f"step {doing[first]['step']}, for" in html.unescape(page)
    assert f'in progress: <a class="mono" href="/runs/{first}">' in page


def test_a_run_waits_for_what_would_keep_every_worker_from_it(served: Served) -> None:
    record = served.workspace.find_run(served.starter.submit("gl-close", "2026-03").run_id).record
    around = Environs([record], (), Load(running=0, queued=1), 4, utc_now())
    later = utc_now() + timedelta(hours=1)
    assert waits_for(replace(record, approval_pending=True), around).waits_for == "waits for approval"
    delayed = replace(record, request=replace(record.request, not_before=later))
    assert waits_for(delayed, around).waits_for == f"starts at {later:%Y-%m-%d %H:%M:%S} UTC at the earliest"
    full = replace(around, load=Load(running=4, queued=1))
    assert waits_for(record, full).waits_for == "all 4 places are taken"


def test_captures_are_asked_for_with_the_run(served: Served) -> None:
    client = served.browser()
    page = as_page(client, "/projects/gl-close").text
    [token, *_] = re.findall(r'name="csrf_token" value="([^"]+)"', page)
    [name, *_] = map(html.unescape, re.findall(r'<option value="([^"=]+)">as the environment says', page))
    form = {
        "csrf_token": token,
        "request_id": "with captures",
        "period": "2026-02",
        "capture": ["", f"{name}={CaptureMode.STATS.value}"],
    }
    answer = client.post("/projects/gl-close/runs", data=form, headers={"Accept": "text/html"})
    assert answer.status_code == 303, answer.text
    run = served.workspace.find_run(answer.headers["location"].rpartition("/")[2])
    [asked] = requests_in(run.record.request.parameters)
    assert (asked.breakpoint, asked.mode) == (name, CaptureMode.STATS)
