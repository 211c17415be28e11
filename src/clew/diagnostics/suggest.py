"""Near names, for "did you mean"."""

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_CANDIDATES = 2000
"""Comparing is quadratic in the length of the names; past this many a suggestion is not worth the wait."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a user most likely meant, or None where none is near."""
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    folded = name.casefold()
    if folded in by_folded:
        return by_folded[folded]
    if len(by_folded) > _MOST_CANDIDATES or len(name) > 100:
        return None
    matches = get_close_matches(folded, by_folded, n=1, cutoff=0.7)
    return by_folded[matches[0]] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A ready hint, or None where no candidate is near."""
    match = nearest(name, candidates)
    return f'did you mean "{match}"?' if match is not None else None
