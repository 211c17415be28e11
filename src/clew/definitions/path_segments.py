"""Names that become the name of a file or folder."""

import re

_LONGEST = 200
_NEVER = re.compile(r"[/\\\x00-\x1f]")
_CHARACTERS = re.compile(r"[A-Za-z0-9._-]+")
_STAGING = ".staging"
"""The end of names under which files are written before they are complete."""


def is_path_segment(name: str) -> bool:
    """Whether a name can be that of a folder: one step down, visible, and not one that Clew itself uses."""
    is_hidden_or_up = name.startswith(".") or name.endswith((".", " "))
    return not (is_hidden_or_up or _NEVER.search(name) or name.endswith(_STAGING) or not 0 < len(name) <= _LONGEST)


def is_slug_like(name: str) -> bool:
    """Whether a name has the characters of an id; whether they are in the right places is another question."""
    return _CHARACTERS.fullmatch(name) is not None


NOT_A_SEGMENT = "it becomes the name of a folder: use letters, digits, . _ and -, and do not start or end with a dot"
