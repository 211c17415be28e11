"""Planning an output: columns, destination, and the dataset that it may become."""

from collections.abc import Mapping
from typing import assert_never

from clew.definitions import LocationDestination, Output, PathDestination, Scalar, TableDestination
from clew.diagnostics import did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE
from clew.plan.names import is_label
from clew.plan.operations.context import Context, PlannedOperation, reads
from clew.plan.steps import Destination, OutputStep

_WRITTEN_BY_DEFAULT = ("_period", "_labels", "_row_id")
"""System columns of an output that does not name its columns; `_deleted` joins them where it can be TRUE."""


def plan_output(context: Context, operation: Output) -> PlannedOperation:
    """The step of an output. The working dataset stays as it is."""
    arguments = operation.arguments
    selector = context.expressions.selector(operation.selector, context.scope()) if operation.selector else None
    columns = _columns(context, operation)
    registers = arguments.register_as_dataset
    if registers is not None and not is_label(registers):
        problem = f'a dataset cannot be registered as "{registers}": the name may have letters, digits, . _ and - only'
        span = arguments.place("register_as_dataset")
        context.problems.report(INVALID_VALUE.at(span, problem=problem, hint="choose another name"))
    if (operation.selector and selector is None) or columns is None:
        return PlannedOperation(None, context.state)
    step = OutputStep(
        seq=context.placed.seq,
        id=context.id,
        name=operation.name,
        description=operation.description or None,
        path=context.placed.path,
        place=operation.span,
        breakpoint=context.breakpoint,
        selector=selector,
        reads=reads([("selector", selector)]),
        adds=(),
        destination=_destination(arguments.destination),
        mode=arguments.write_mode.value,
        columns=columns,
        include_deleted=arguments.include_deleted,
        registers=registers,
    )
    return PlannedOperation(step, context.state)


def _columns(context: Context, operation: Output) -> tuple[str, ...] | None:
    written = operation.arguments.columns
    if written is None:
        system = (*_WRITTEN_BY_DEFAULT, *(("_deleted",) if operation.arguments.include_deleted else ()))
        return (*(column.name for column in context.state.schema.columns), *system)
    named = tuple(context.own_name(name) for name in written)
    known = context.state.schema.types
    is_right = True
    for index, name in enumerate(named):
        span = operation.arguments.place("columns", index)
        if name not in known:
            if context.state.is_opaque:
                continue
            hint = context.column_elsewhere(name) or did_you_mean(name, known)
            context.problems.report(UNKNOWN_COLUMN.at(span, column=name, table=context.state.table, hint=hint))
            is_right = False
        elif name in named[:index]:
            context.problems.report(DUPLICATE_COLUMN.at(span, column=name))
            is_right = False
    return named if is_right else None


def _destination(written: TableDestination | PathDestination | LocationDestination) -> Destination:
    match written:
        case TableDestination():
            return Destination(written.datasource_id, written.table, None, written.format, _options(written.options))
        case PathDestination():
            return Destination(
                written.datasource_id, None, written.path, written.file_format, _options(written.options)
            )
        case LocationDestination(location=location):
            return Destination(None, None, location.path, location.file_format, _options(location.options))
        case _:
            assert_never(written)


def _options(options: Mapping[str, Scalar]) -> tuple[tuple[str, str], ...]:
    """Options as Spark takes them. One without a value is one that is not set."""
    return tuple(sorted((name, _option_text(value)) for name, value in options.items() if value is not None))


def _option_text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
