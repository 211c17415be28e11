"""Answers that never change: a client that requests one again gets 304 and keeps its copy."""

import hashlib
from collections.abc import Callable, Mapping

from fastapi import Request, Response
from fastapi.responses import JSONResponse

_REVALIDATE = "private, no-cache"
"""A browser may keep the answer, but must revalidate it each time, since permissions can change."""


def unchanging(request: Request, build: Callable[[], Mapping[str, object]], *identity: object) -> Response:
    """A document that depends on `identity` and the address only, or 304 if the client already has it."""
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
