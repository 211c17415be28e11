"""Samples drawn in plain Python: the reference that the samples of Spark are held against."""

import hashlib
from collections.abc import Iterable


def rank(run_id: str, ordinal: int) -> str:
    """The rank of a row."""
    return hashlib.md5(f"{run_id}:{ordinal}".encode(), usedforsecurity=False).hexdigest()


def sampled(run_id: str, ordinals: Iterable[int], rows: int) -> list[int]:
    """The rows of a sample, in their order; all of them where there are no more."""
    return sorted(sorted(ordinals, key=lambda ordinal: (rank(run_id, ordinal), ordinal))[:rows])
