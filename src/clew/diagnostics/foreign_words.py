"""What other programs say in their errors: Spark, databases, Arrow. They may quote values of rows.

They put values in quotes or brackets, or name numbers and days. Whatever looks like that is left out where a message
must not show values, so that the kind of error and the names of files can still be told.
"""

import re

ELLIPSIS = "…"

_QUOTED = re.compile(r""" "[^"]*("|$) | '[^']*('|$) | `[^`]*(`|$) | «[^»]*(»|$) """, re.VERBOSE)
_BRACKETED = re.compile(r"\((?:[^()]|\([^()]*\))*(?:\)|$)|\{[^{}]*(?:\}|$)|\[(?![A-Z][A-Z0-9_.]*\])[^\[\]]*(?:\]|$)")
"""Brackets around a code such as [CAST_INVALID_INPUT] stay."""
_NUMBER = re.compile(r"(?<![\w/.:=-])[-+]?\d[\d.,:T+-]{2,}(?!\w)(?!/)")
"""Numbers and days that stand alone, and are not part of a name or a path."""
_AFTER = re.compile(r"(\bvalues?\s*[:=]\s*).*", re.IGNORECASE)
"""What is announced as a value."""


def without_quoted(text: str) -> str:
    """The first line of a text without what it quotes. Further lines may show a value under a caret."""
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    line = _QUOTED.sub(lambda found: f"{found[0].strip()[:1]}{ELLIPSIS}{found[0].strip()[:1]}", line)
    line = _BRACKETED.sub(lambda found: f"{found[0][0]}{ELLIPSIS}{_CLOSING[found[0][0]]}", line)
    return _NUMBER.sub(ELLIPSIS, _AFTER.sub(rf"\1{ELLIPSIS}", line))


_CLOSING = {"(": ")", "[": "]", "{": "}"}
