"""What the YAML parser complains about, in the words of somebody who edits the file."""

import re
from collections.abc import Mapping

import yaml

from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.language import SYNTAX_ERROR
from clew.model.source import Source

_CONTROL_CHARACTER = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_INDENTATION = "this line does not fit the indentation of the lines before it"
_WORDINGS: Mapping[str, tuple[str, str]] = {
    "mapping values are not allowed": (
        '":" is not expected here',
        'put text with ": " in it in quotes, and check the indentation of this line and the one before',
    ),
    "did not find expected key": (
        _INDENTATION,
        "keys of one mapping start in the same column; quotes end where they began",
    ),
    "expected <block end>": (_INDENTATION, "keys of one mapping start in the same column; quotes end where they began"),
    "expected '-' indicator": (_INDENTATION, "the items of one list start with - in the same column"),
    "sequence entries are not allowed": (
        "a list cannot start here",
        'start the list in the next line, or write "[...]"',
    ),
    "could not find expected ':'": ('":" is missing after the key', "write `key: value`"),
    "unknown escape character": (
        "a backslash in double quotes must start an escape that YAML knows",
        "write two backslashes for one, or use single quotes",
    ),
    "expected node content": ("a value is expected here", "put text that starts with a special character in quotes"),
    "the node content": ("a value is expected here", "put text that starts with a special character in quotes"),
    "alphabetic or numeric": ('a value cannot start with "*" or "&"', "put the value in quotes"),
    "comment or": ("text cannot stand behind | or >", "start the text in the next line"),
    "undefined tag handle": ("tags are not allowed", "remove it; quotes make a value text"),
    "expected <document start>": ("the document has ended before this line", "remove the line ... above"),
    "incompatible YAML document": ("this version of YAML cannot be read", "remove the %YAML line"),
}
"""By a part of the parser's own words: the problem and what to do."""


def control_character(source: Source) -> Diagnostic | None:
    """The first character that no YAML file may have, if there is one."""
    match = _CONTROL_CHARACTER.search(source.text)
    if match is None:
        return None
    problem = f"the character U+{ord(match[0]):04X} is not allowed in a file"
    return SYNTAX_ERROR.at(source.span(match.start(), match.end()), problem=problem, hint="remove it")


def unreadable_yaml(source: Source, error: yaml.YAMLError) -> Diagnostic:
    """The complaint of the parser as a diagnostic at the right place."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return SYNTAX_ERROR.at(source.span(0, 0), problem=f"this is not YAML: {error}".splitlines()[0])
    index = min(error.problem_mark.index, len(source.text))
    begun = error.context_mark.index if error.context_mark is not None else index
    culprit = source.text[index : index + 1]
    complaint = error.problem or ""
    if "end of stream" in complaint and "quoted" in (error.context or ""):
        return SYNTAX_ERROR.at(source.span(begun, begun + 1), problem="this quote is never closed", hint="close it")
    if "flow" in (error.context or "") and "expected ','" in complaint:
        return _unclosed(source, begun, index)
    if "tab character" in complaint or (culprit == "\t" and "start any token" in complaint):
        return SYNTAX_ERROR.at(source.span(index, index + 1), problem="a tab cannot indent a line", hint="use spaces")
    if "start any token" in complaint:
        problem = f'a value cannot start with "{culprit}"'
        return SYNTAX_ERROR.at(source.span(index, index + 1), problem=problem, hint="put the value in quotes")
    problem, hint = _in_other_words(complaint)
    if problem == _INDENTATION and not _starts_its_line(source, index):
        problem, hint = "this is not expected here", "remove it, or put the whole value in quotes"
    return SYNTAX_ERROR.at(source.span(index, index + 1), problem=problem, hint=hint)


def _in_other_words(complaint: str) -> tuple[str, str | None]:
    for words, wording in _WORDINGS.items():
        if words in complaint:
            return wording
    return f"this is not YAML: {complaint}", None


def _starts_its_line(source: Source, index: int) -> bool:
    column = source.span(index, index).column
    return not source.text[index - column + 1 : index].strip()


def _unclosed(source: Source, begun: int, index: int) -> Diagnostic:
    opening = source.text[begun : begun + 1]
    closing = "]" if opening == "[" else "}"
    problem = f'"," or "{closing}" is missing before this place'
    if index >= len(source.text.rstrip()):
        return SYNTAX_ERROR.at(
            source.span(begun, begun + 1), problem=f'this "{opening}" is never closed', hint="close it"
        )
    hint = f'the "{opening}" in line {source.span(begun, begun).line} is still open'
    return SYNTAX_ERROR.at(source.span(index, index + 1), problem=problem, hint=hint)
