"""Upper and lower case as of Unicode 17, which is what Spark knows. Python knows what was current when it came out."""

_NEWER_PAIRS = {
    "\u1c89": "\u1c8a",
    "\ua7cb": "\u0264",
    "\ua7cc": "\ua7cd",
    "\ua7ce": "\ua7cf",
    "\ua7d2": "\ua7d3",
    "\ua7d4": "\ua7d5",
    "\ua7da": "\ua7db",
    "\ua7dc": "\u019b",
    **{chr(0x10D50 + index): chr(0x10D70 + index) for index in range(22)},
    **{chr(0x16EA0 + index): chr(0x16EBB + index) for index in range(25)},
}
"""Upper and lower case of the letters that came after Unicode 14, the one of the oldest Python we run on."""

_TO_LOWER = str.maketrans(_NEWER_PAIRS)
_TO_UPPER = str.maketrans({lower: upper for upper, lower in _NEWER_PAIRS.items()})


def upper(text: str) -> str:
    """The text in upper case, which can be longer."""
    return text.upper() if text.isascii() else text.upper().translate(_TO_UPPER)


def lower(text: str) -> str:
    """The text in lower case, which can be longer."""
    return text.lower() if text.isascii() else text.lower().translate(_TO_LOWER)
