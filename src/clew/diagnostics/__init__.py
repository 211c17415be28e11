"""Spans, error codes, messages and the error tree: how Clew says what is wrong and where."""

from clew.diagnostics.code import Code, Nature
from clew.diagnostics.diagnostic import Diagnostic, in_order
from clew.diagnostics.errors import ClewError, EngineBug, TransientFailure, UserError, raise_if_any
from clew.diagnostics.render import render
from clew.diagnostics.span import Span
from clew.diagnostics.suggest import did_you_mean, nearest
from clew.diagnostics.text import PlainText, Text

__all__ = [
    "ClewError",
    "Code",
    "Diagnostic",
    "EngineBug",
    "Nature",
    "PlainText",
    "Span",
    "Text",
    "TransientFailure",
    "UserError",
    "did_you_mean",
    "in_order",
    "nearest",
    "raise_if_any",
    "render",
]
