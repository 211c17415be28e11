"""The expression language: grammar, types, functions, checking, and evaluation in plain Python."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.lang.checker import Checked, Grouped, Scalar, check, check_condition
    from clew.lang.evaluation import Row, evaluator, group_evaluator
    from clew.lang.functions import FUNCTIONS
    from clew.lang.parser import parse
    from clew.lang.scope import Scope, Table
    from clew.lang.single_row import evaluate
    from clew.lang.text_form import text_of
    from clew.lang.typed import Expression, Value, columns_of
    from clew.lang.types import Type, parse_type

__all__ = [
    "FUNCTIONS",
    "Checked",
    "Expression",
    "Grouped",
    "Row",
    "Scalar",
    "Scope",
    "Table",
    "Type",
    "Value",
    "check",
    "check_condition",
    "columns_of",
    "evaluate",
    "evaluator",
    "group_evaluator",
    "parse",
    "parse_type",
    "text_of",
]

_LATER = {
    "Checked": "clew.lang.checker",
    "Grouped": "clew.lang.checker",
    "Scalar": "clew.lang.checker",
    "check": "clew.lang.checker",
    "check_condition": "clew.lang.checker",
    "Row": "clew.lang.evaluation",
    "evaluator": "clew.lang.evaluation",
    "group_evaluator": "clew.lang.evaluation",
    "FUNCTIONS": "clew.lang.functions",
    "parse": "clew.lang.parser",
    "Scope": "clew.lang.scope",
    "Table": "clew.lang.scope",
    "evaluate": "clew.lang.single_row",
    "text_of": "clew.lang.text_form",
    "Expression": "clew.lang.typed",
    "Value": "clew.lang.typed",
    "columns_of": "clew.lang.typed",
    "Type": "clew.lang.types",
    "parse_type": "clew.lang.types",
}
"""Modules are imported on first use: most commands need types and values, and no functions."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'clew.lang' has no attribute '{name}'")
    found = getattr(import_module(_LATER[name]), name)
    globals()[name] = found
    return found
