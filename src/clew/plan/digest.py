"""A digest over what decides results."""

import hashlib
import json

from clew.plan.json_form import to_plain

_DOES_NOT_COUNT = frozenset({"place", "description", "title", "project_version", "digest"})
"""What may change without another result: where things stand, what people say about them, how often they changed."""


def digest_of(value: object) -> str:
    """SHA-256, in hex, over the canonical JSON of records of a plan."""
    canonical = json.dumps(_counting(to_plain(value)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _counting(data: object) -> object:
    match data:
        case dict():
            return {key: _counting(value) for key, value in data.items() if key not in _DOES_NOT_COUNT}
        case list():
            return [_counting(item) for item in data]
        case _:
            return data
