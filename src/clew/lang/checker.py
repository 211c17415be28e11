"""From the syntax tree to the typed tree: names, types, where aggregates are allowed.

All problems of an expression are reported together; a part that is wrong causes no further errors.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from clew.deferred import dataclass
from clew.diagnostics import ClewError, Diagnostic, PlainText, did_you_mean
from clew.diagnostics.codes.language import (
    AGGREGATE_NOT_ALLOWED,
    AGGREGATE_REQUIRED,
    SYNTAX_ERROR,
    TYPE_MISMATCH,
    UNKNOWN_FUNCTION,
    VALUE_OUT_OF_RANGE,
    WRONG_ARGUMENT_COUNT,
)
from clew.diagnostics.codes.workspace import RESERVED_COLUMN
from clew.lang.evaluation import constant_value
from clew.lang.functions import (
    FUNCTIONS,
    HOLIDAYS,
    PERIOD_FUNCTIONS,
    SHORTHANDS,
    AggregateFunction,
    AnyFunction,
    Argument,
    Family,
    Function,
    LazyFunction,
    PeriodFunction,
    Shorthand,
    SignatureProblem,
    arity,
    usage,
)
from clew.lang.literals import text_of_value
from clew.lang.other_dialects import FUNCTIONS_ELSEWHERE
from clew.lang.parser import parse
from clew.lang.scope import Scope
from clew.lang.syntax import MAX_DEPTH, Bound, Call, Literal, Node, Reference, SelectorReference
from clew.lang.typed import OVER, Apply, ColumnValue, Constant, Convert, Expression
from clew.lang.types import BOOLEAN, INTEGER, NULL, STRING, Kind, Type, decimal
from clew.lang.windowing import MOST_ROWS, WINDOW_AGGREGATES, WINDOW_FUNCTIONS, WindowCall, WindowFunction


@dataclass(frozen=True, slots=True)
class Scalar:
    """The expression is evaluated row by row. `place` says where it is, for messages: "in a selector"."""

    place: str
    takes_windows: bool = False
    """Whether calls may look at other rows, with OVER."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """The expression is evaluated over a group: columns outside of aggregates must be grouped by."""

    group_by: frozenset[str]


Setting = Scalar | Grouped


@dataclass(frozen=True, slots=True)
class Checked:
    """The typed tree, or None if something is wrong with it."""

    expression: Expression | None
    diagnostics: tuple[Diagnostic, ...]
    windows: tuple[WindowCall, ...] = ()
    """The calls with OVER in it, for which the tree has columns of the table `OVER`."""


def check(node: Node, scope: Scope, setting: Setting) -> Checked:
    """Resolve names and infer types. Selector references must have been substituted before."""
    checker = _Checker(scope, setting)
    expression = checker.visit(node)
    windows = tuple({each.column: each for each in checker.windows}.values())
    return Checked(None if checker.diagnostics else expression, tuple(checker.diagnostics), windows)


def check_condition(node: Node, scope: Scope, place: str) -> Checked:
    """Like `check`, for an expression that must be TRUE, FALSE or NULL."""
    checked = check(node, scope, Scalar(place))
    if checked.expression is None or checked.expression.type.kind in {Kind.BOOLEAN, Kind.NULL}:
        return checked
    problem = f"a condition is expected {place}, this is {checked.expression.type}"
    hint = "compare it with something, for example with = or IS NOT NULL"
    return Checked(None, (TYPE_MISMATCH.at(node.region.span, problem=problem, hint=hint),))


class _Checker:
    def __init__(self, scope: Scope, setting: Setting) -> None:
        self._scope = scope
        self._setting = setting
        self._inside: str | None = None
        self._depth = 0
        self.diagnostics = list[Diagnostic]()
        self.windows = list[WindowCall]()

    def report(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)

    def visit(self, node: Node) -> Expression | None:
        match node:
            case Literal():
                return literal(node)
            case Reference():
                return self._reference(node)
            case SelectorReference():
                hint = "named selectors stand in the expressions of a project; write the condition itself here"
                problem = "a selector reference is not allowed here"
                self.report(SYNTAX_ERROR.at(node.region.span, problem=problem, hint=hint))
                return None
            case Call():
                if self._depth == MAX_DEPTH:
                    return self._too_deep(node)
                self._depth += 1
                applied = self._call(node)
                self._depth -= 1
                return applied

    def _too_deep(self, node: Node) -> Expression | None:
        """Selectors within selectors can be deeper than what was written in any of them."""
        problem = f"nested more than {MAX_DEPTH} levels deep"
        self.report(SYNTAX_ERROR.at(node.region.span, problem=problem, hint="move parts into separate columns"))
        return None

    def _reference(self, node: Reference) -> Expression | None:
        found = self._scope.resolve(node)
        if isinstance(found, Diagnostic):
            self.report(found)
            return None
        if isinstance(found, Constant):
            return found
        if isinstance(self._setting, Grouped) and self._inside is None and node.column not in self._setting.group_by:
            self.report(AGGREGATE_REQUIRED.at(node.region.span, column=node.column))
            return None
        return found

    def _call(self, node: Call) -> Expression | None:
        shorthand = SHORTHANDS.get(node.name)
        if shorthand is not None and (node.over is None or shorthand.family is Family.AGGREGATE):
            return self._shorthand(node, shorthand)
        if node.over is not None or node.name in WINDOW_FUNCTIONS:
            return self._window(node)
        if node.name in PERIOD_FUNCTIONS and self._scope.parameters is not None:
            return self._fact_of_period(node, PERIOD_FUNCTIONS[node.name])
        function = FUNCTIONS.get(node.name)
        if function is None or (function.family is Family.OPERATOR and node.head.source.isidentifier()):
            self._unknown_function(node)
            return None
        fits = self._count_fits(node, function)
        if isinstance(function, AggregateFunction):
            arguments = self._aggregate_arguments(node, function)
        else:
            arguments = list[Expression | None]()
            for argument in node.arguments:  # a comprehension would be one more call for each level
                arguments.append(self.visit(argument))
        known = [argument for argument in arguments if argument is not None]
        if not fits or len(known) < len(arguments):
            return None
        return self._apply(node, function, known)

    def _shorthand(self, node: Call, shorthand: Shorthand) -> Expression | None:
        """What a shorthand stands for, with the arguments in their places."""
        if not self._count_fits(node, shorthand):
            for argument in node.arguments:
                self.visit(argument)
            return None
        left_out = len(shorthand.parameters) - len(node.arguments)
        defaults = shorthand.defaults[len(shorthand.defaults) - left_out :] if left_out else ()
        given = (*node.arguments, *(_placed(parse(PlainText(text)), (), node) for text in defaults))
        return self.visit(_placed(_pattern_of(shorthand.stands_for), given, node))

    def _fact_of_period(self, node: Call, fact: PeriodFunction) -> Expression | None:
        """A constant that gets its value with the period of a run, by the name of the call."""
        if not self._count_fits(node, fact):
            return None
        if fact.name == HOLIDAYS:
            hint = 'write WORKDAY(day, 2, HOLIDAYS("ID"))'
            self.report(SYNTAX_ERROR.at(node.region.span, problem=f"{HOLIDAYS} stands in WORKDAY only", hint=hint))
            return None
        given = [each.value if isinstance(each, Literal) else None for each in node.arguments]
        if not all(isinstance(value, str) for value in given):
            problem = f"{fact.name} takes the name of a level in quotes"
            hint = f'for example {fact.name}("month")'
            self.report(TYPE_MISMATCH.at(node.arguments[0].region.span, problem=problem, hint=hint))
            return None
        return Constant(None, fact.type, f"{fact.name}({', '.join(map(text_of_value, given))})")

    # Windows

    def _window(self, node: Call) -> Expression | None:
        """A call with OVER: a column of the rows' windows, which are listed beside the tree."""
        function = WINDOW_FUNCTIONS.get(node.name) or FUNCTIONS.get(node.name) or SHORTHANDS.get(node.name)
        if function is None:
            self._unknown_function(node)
            return None
        problem = self._misplaced_window(node, function)
        if problem is not None:
            self.report(SYNTAX_ERROR.at(node.head.span, problem=problem[0], hint=problem[1]))
            return None
        assert node.over is not None  # noqa: S101 - a call without it is misplaced
        assert not isinstance(function, Shorthand)  # noqa: S101 - what has a window has been put in place
        own = _Checker(_in_window(self._scope), Scalar("in a window"))
        fits = own._count_fits(node, function)
        arguments = [own.visit(argument) for argument in node.arguments]
        keys = [own._column_of_window(each, "grouped") for each in node.over.partition_by]
        order = [(own._column_of_window(each.column, "sorted"), each.descending) for each in node.over.order_by]
        frame = own._frame(node, function)
        self.diagnostics += own.diagnostics
        known = [argument for argument in arguments if argument is not None]
        if not fits or own.diagnostics or len(known) < len(arguments):
            return None
        applied = self._apply(node, function, known)
        if applied is None:
            return None
        assert isinstance(applied, Apply)  # noqa: S101 - as `_apply` gives
        window = WindowCall(
            column="",
            function=applied.function,
            arguments=applied.arguments,
            type=applied.type,
            keys=tuple(dict.fromkeys(each.column for each in keys if each is not None)),
            order=tuple((each.column, descending) for each, descending in order if each is not None),
            first=frame[0],
            last=frame[1],
            is_counted=node.over.frame is not None,
        ).named()
        self.windows.append(window)
        return ColumnValue(OVER, window.column, window.type)

    def _misplaced_window(
        self, node: Call, function: AnyFunction | WindowFunction | Shorthand
    ) -> tuple[str, str] | None:
        """What is wrong with a window here, and what to do about it."""
        if node.over is None:
            form = f"write {node.name}({'value' if function.parameters else ''}) OVER (PARTITION BY ... ORDER BY ...)"
            return f"{node.name} needs a window", form
        if not isinstance(function, WindowFunction) and function.name not in WINDOW_AGGREGATES:
            listed = ", ".join((*WINDOW_AGGREGATES, *WINDOW_FUNCTIONS))
            return f"{node.name} has no window", f"these have: {listed}, and what stands for them, such as SUM_IF"
        if not isinstance(self._setting, Scalar) or not self._setting.takes_windows:
            where = "in an aggregation" if isinstance(self._setting, Grouped) else self._setting.place
            return f"OVER is not allowed {where}", "set a column in an update before, and use that"
        if isinstance(function, WindowFunction) and function.needs_order and not node.over.order_by:
            return f"{node.name} needs an order", "write OVER (ORDER BY column)"
        return None

    def _column_of_window(self, node: Reference, used: str) -> ColumnValue | None:
        found = self._scope.resolve(node)
        if isinstance(found, ColumnValue) and found.column in {"_deleted", "_row_id"}:
            found = RESERVED_COLUMN.at(node.region.span, column=found.column, action=f"{used} by", hint=None)
        if isinstance(found, Constant):
            problem = f"only columns can be {used} by"
            found = SYNTAX_ERROR.at(node.region.span, problem=problem, hint="leave it out")
        if isinstance(found, Diagnostic):
            self.report(found)
            return None
        return found

    def _frame(self, node: Call, function: AnyFunction | WindowFunction) -> tuple[int | None, int | None]:
        """The first and the last row of the frame, counted from the current one."""
        frame = node.over.frame if node.over is not None else None
        if frame is None:
            return None, None
        ends = [0 if each.direction == "CURRENT" else _away(each) for each in frame]
        problem = None
        if isinstance(function, WindowFunction):
            problem = f"{function.name} looks at the whole partition and takes no ROWS"
        elif any(each.rows is not None and not isinstance(each.rows.value, int) for each in frame):
            problem = "the number of rows is a whole number"
        elif any(end is not None and abs(end) > MOST_ROWS for end in ends):
            problem = f"a frame reaches at most {MOST_ROWS:,} rows, or is unbounded"
        elif frame[0] == Bound(None, "FOLLOWING") or frame[1] == Bound(None, "PRECEDING"):
            problem = "this frame begins after all rows, or ends before them"
        elif None not in ends and ends[0] > ends[1]:  # type: ignore[operator]
            problem = "this frame ends before it begins"
        if problem is not None:
            hint = "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
            self.report(SYNTAX_ERROR.at(node.over.region.span, problem=problem, hint=hint))  # type: ignore[union-attr]
        return ends[0], ends[1]

    def _unknown_function(self, node: Call) -> None:
        if node.name in PERIOD_FUNCTIONS:
            known = "it is known in the operations of a project only"
            self.report(UNKNOWN_FUNCTION.at(node.head.span, name=node.name, hint=known))
            return
        named = [function.name for function in FUNCTIONS.values() if function.family is not Family.OPERATOR]
        callable_names = [*named, *SHORTHANDS, *PERIOD_FUNCTIONS, *WINDOW_FUNCTIONS]
        hint = FUNCTIONS_ELSEWHERE.get(node.name) or did_you_mean(node.name, callable_names)
        self.report(UNKNOWN_FUNCTION.at(node.head.span, name=node.name, hint=hint))
        for argument in node.arguments:
            self.visit(argument)

    def _count_fits(self, node: Call, function: AnyFunction | Shorthand | PeriodFunction | WindowFunction) -> bool:
        least, most = arity(function)
        actual = len(node.arguments)
        if least <= actual and (most is None or actual <= most):
            return True
        self.report(
            WRONG_ARGUMENT_COUNT.at(
                node.head.span,
                function=function.name,
                expected=_count_in_words(least, most),
                actual=actual,
                hint=f"it is called as {usage(function)}",
            )
        )
        return False

    def _aggregate_arguments(self, node: Call, function: AggregateFunction) -> list[Expression | None]:
        place = None
        if isinstance(self._setting, Scalar):
            place = self._setting.place
        elif self._inside is not None:
            place = f"inside {self._inside}"
        if place is not None:
            self.report(AGGREGATE_NOT_ALLOWED.at(node.head.span, function=function.name, place=place))
        outer, self._inside = self._inside, function.name
        arguments = [self.visit(argument) for argument in node.arguments]
        self._inside = outer
        return arguments

    def _apply(
        self, node: Call, function: AnyFunction | WindowFunction, arguments: list[Expression]
    ) -> Expression | None:
        try:
            signature = function.infer([_as_argument(argument) for argument in arguments])
        except SignatureProblem as problem:
            self._mismatch(node, problem)
            return None
        converted = tuple(
            _converted(argument, parameter) for argument, parameter in zip(arguments, signature.parameters, strict=True)
        )
        applied = Apply(function.name, converted, signature.result)
        return applied if self._constant_works(node, function, applied) else None

    def _mismatch(self, node: Call, problem: SignatureProblem) -> None:
        culprit = node.region if problem.argument is None else node.arguments[problem.argument].region
        shown = {"NEGATE": "-"}.get(node.name, node.name)
        message = problem.problem if problem.argument is None else f"{shown}: {problem.problem}"
        self.report(TYPE_MISMATCH.at(culprit.span, problem=message, hint=problem.hint))

    def _constant_works(self, node: Call, function: AnyFunction | WindowFunction, applied: Apply) -> bool:
        """Whether a call of constants has a value; a day like 2026-02-30 is better found now than in a run."""
        if not isinstance(function, Function | LazyFunction):
            return True
        constants = [_unconverted(argument) for argument in applied.arguments]
        if not all(isinstance(each, Constant) and each.parameter is None for each in constants):
            return True
        try:
            constant_value(applied)
        except ClewError as error:
            found = error.diagnostic
            self.report(VALUE_OUT_OF_RANGE.at(node.region.span, problem=found.message, hint=found.hint))
            return False
        return True


@cache
def _pattern_of(stands_for: str) -> Node:
    """What a shorthand stands for; the column `n` of the table `$` is its argument n."""
    return parse(PlainText(re.sub(r"\$(\d)", r"`$`.`\1`", stands_for)))


def _placed(pattern: Node, arguments: Sequence[Node], node: Call) -> Node:
    """A pattern with arguments in it, all else at the place of a call."""
    match pattern:
        case Reference("$", column):
            return arguments[int(column) - 1]
        case Call(name, parts, head=head):
            is_operator = FUNCTIONS[name].family is Family.OPERATOR if name in FUNCTIONS else False
            placed = tuple(_placed(part, arguments, node) for part in parts)
            over = node.over if isinstance(FUNCTIONS.get(name), AggregateFunction) else None
            return Call(name, placed, node.region, head if is_operator else node.head, over)
        case Literal(value):
            return Literal(value, node.region)
        case _:
            return pattern


def _in_window(scope: Scope) -> Scope:
    """What a window sees: the working table, as it was before the operation."""
    joined = scope.tables[1:]

    def table_elsewhere(name: str) -> str | None:
        return _NO_JOINS if any(table.name == name for table in joined) else scope.table_elsewhere(name)

    def column_elsewhere(name: str) -> str | None:
        return _NO_JOINS if any(name in table.columns for table in joined) else scope.column_elsewhere(name)

    return replace(scope, tables=scope.tables[:1], table_elsewhere=table_elsewhere, column_elsewhere=column_elsewhere)


_NO_JOINS = "a window does not see joins: set a column from the join in an update before"


def _away(bound: Bound) -> int | None:
    """How far a bound lies behind the current row; None where it is unbounded."""
    if bound.rows is None or not isinstance(bound.rows.value, int):
        return None
    return -bound.rows.value if bound.direction == "PRECEDING" else bound.rows.value


def literal(node: Literal) -> Constant:
    """The constant of a literal; a decimal has just the digits that it is written with."""
    match node.value:
        case None:
            return Constant(None, NULL)
        case bool():
            return Constant(node.value, BOOLEAN)
        case int():
            return Constant(node.value, INTEGER)
        case str():
            return Constant(node.value, STRING)
        case value:
            exponent = value.as_tuple().exponent
            scale = max(0, -int(exponent))
            precision = max(len(value.as_tuple().digits), scale, 1)
            return Constant(value, decimal(precision, scale))


def _as_argument(expression: Expression) -> Argument:
    match expression:
        case Constant(value, type_, None):
            return Argument(type_, value, is_constant=True)
        case Apply("NEGATE", (Constant(int(value)),), type_):
            return Argument(type_, -value, is_constant=True)
        case _:
            return Argument(expression.type)


def _converted(expression: Expression, target: Type) -> Expression:
    return expression if expression.type == target else Convert(expression, target)


def _unconverted(expression: Expression) -> Expression:
    return expression.operand if isinstance(expression, Convert) else expression


def _count_in_words(least: int, most: int | None) -> str:
    def arguments(count: int) -> str:
        return {0: "no arguments", 1: "1 argument"}.get(count, f"{count} arguments")

    if most is None:
        return f"at least {arguments(least)}"
    return arguments(least) if least == most else f"{least} to {arguments(most)}"
