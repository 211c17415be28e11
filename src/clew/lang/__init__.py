"""The expression language: grammar, types, functions, checking, and evaluation in plain Python."""

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
