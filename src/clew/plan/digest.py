"""A digest over what decides results."""

import hashlib
import json

from clew.plan.json_form import to_plain

_DOES_NOT_COUNT = frozenset(
    {"place", "description", "title", "project_version", "digest", "lineage", "reads", "row_names"}
)
"""What may change without another result (where things stand, what people say about them, how often they changed),
and what follows from the rest."""


def digest_of(value: object) -> str:
    """SHA-256, in hex, over the canonical JSON of records of a plan."""
    plain = to_plain(value, leave_out=_DOES_NOT_COUNT)
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
