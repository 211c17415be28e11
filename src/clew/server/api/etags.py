"""Answers that never change, asked for again: the client is told to keep what it has."""

import hashlib
from collections.abc import Callable, Mapping

from fastapi import Request, Response
from fastapi.responses import JSONResponse

_REVALIDATE = "private, no-cache"
"""A browser may keep the answer, and asks each time whether it may show it: who may read can change."""


def unchanging(request: Request, build: Callable[[], Mapping[str, object]], *identity: object) -> Response:
    """The document that `identity` and the address determine for ever, or 304 where the client has it."""
    tag = _tag(request, identity)
    headers = {"ETag": tag, "Cache-Control": _REVALIDATE}
    if matches(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=304, headers=headers)
    return JSONResponse(build(), headers=headers)


def matches(header: str, tag: str) -> bool:
    """Whether an If-None-Match header names a tag."""
    named = {each.strip().removeprefix("W/") for each in header.split(",")}
    return tag in named or "*" in named


def _tag(request: Request, identity: tuple[object, ...]) -> str:
    parts = [request.url.path, request.url.query, *map(str, identity)]
    return f'"{hashlib.sha256("|".join(parts).encode()).hexdigest()[:32]}"'
