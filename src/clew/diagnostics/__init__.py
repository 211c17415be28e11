"""Spans, error codes, messages and the error tree: how Clew says what is wrong and where."""

from clew.diagnostics.diagnostic import (
    ClewError,
    Code,
    Diagnostic,
    EngineBug,
    Nature,
    PlainText,
    Problems,
    Span,
    Text,
    TransientFailure,
    UserError,
    in_order,
    raise_if_any,
)
from clew.diagnostics.excerpts import did_you_mean, nearest, render

__all__ = [
    "ClewError",
    "Code",
    "Diagnostic",
    "EngineBug",
    "Nature",
    "PlainText",
    "Problems",
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
