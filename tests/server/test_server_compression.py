"""Answers are compressed, streams stay streams, and other sites can measure nothing."""

import asyncio
import gzip
import re
import zlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from clew.server.protection.compressed_answers import CompressedAnswers
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served


def test_a_page_with_many_rows_takes_a_tenth_of_its_size(shared: Served) -> None:
    client, address = shared.client("auditor"), f"/runs/{shared.run_id}/rows"
    with client.stream("GET", address, headers={"Accept": "text/html", "Accept-Encoding": "gzip"}) as answer:
        sent = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in answer.headers["vary"].lower()
    plain = client.get(address, headers={"Accept": "text/html", "Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert gzip.decompress(sent).count(b"<td") == plain.content.count(b"<td") > 500
    assert len(sent) < len(plain.content) / 10


def test_a_page_with_its_style_and_scripts_weighs_less_than_150_kilobytes(shared: Served) -> None:
    """The widest page of rows, a graph, and a project: what a first visit loads, as it is sent."""
    client, run = shared.client("auditor"), f"/runs/{shared.run_id}"

    def weight(address: str) -> int:
        headers = {"Accept": "text/html,*/*", "Accept-Encoding": "gzip"}
        with client.stream("GET", address, headers=headers) as answer:
            assert answer.status_code == 200
            return len(b"".join(answer.iter_raw()))

    for address in (f"{run}/rows?at=60", run, "/lineage", "/projects/gl-close", "/"):
        page = as_page(client, address).text
        linked = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
        imported = [f"/static/{name}" for name in ("pages.js", "filters.js", "pictures.js")]
        assert weight(address) + sum(map(weight, [*linked, *imported])) < 150_000, address


@pytest.mark.parametrize(
    ("site", "is_compressed"), [("same-origin", True), ("none", True), ("cross-site", False), ("same-site", False)]
)
def test_what_another_site_has_caused_is_not_compressed(shared: Served, site: str, is_compressed: bool) -> None:
    answer = as_page(shared.client("viewer"), "/projects/gl-close")
    assert answer.headers["content-encoding"] == "gzip"
    headers = {"Accept": "text/html", "Sec-Fetch-Site": site}
    asked = shared.client("viewer").get("/projects/gl-close", headers=headers)
    assert asked.status_code == 200
    assert ("content-encoding" in asked.headers) == is_compressed


def test_each_part_of_a_stream_can_be_read_when_it_is_sent() -> None:
    sent = list[bytes]()
    unpack = zlib.decompressobj(16 + zlib.MAX_WBITS)
    readable = list[bytes]()

    async def parts() -> AsyncIterator[bytes]:
        for number in range(3):
            yield f"part {number}\n".encode() * 200
            readable.append(unpack.decompress(sent[-1]))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(parts(), media_type="text/html")(scope, receive, send)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body" and message["body"]:
            sent.append(message["body"])

    scope = {
        "type": "http",
        "method": "GET",
        "headers": [(b"accept-encoding", b"gzip")],
        "asgi": {"spec_version": "2.4"},
    }
    with ThreadPoolExecutor(max_workers=1) as beside:  # tests in a browser leave a loop running in this thread
        beside.submit(lambda: asyncio.run(CompressedAnswers(app)(scope, receive, send))).result()
    assert readable == [f"part {number}\n".encode() * 200 for number in range(3)]
