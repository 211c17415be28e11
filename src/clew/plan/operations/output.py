"""Output: writes the rows that its selector matches to a destination, and may register them as a dataset."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clew.diagnostics import did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE
from clew.plan import words
from clew.plan.lineage import LineageState
from clew.plan.names import is_label
from clew.plan.operations.context import Context, PlannedOperation, reads
from clew.plan.steps import Detail, StepBase

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import Output, Scalar

_WRITTEN_BY_DEFAULT = ("_period", "_labels", "_row_id")
"""System columns of an output that does not name its columns; `_deleted` joins them where it can be TRUE."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an output goes: a table or a path of a datasource, or a location that the project names."""

    datasource_id: str | None
    table: str | None
    path: str | None
    format: str | None
    options: tuple[tuple[str, str], ...]

    @property
    def described(self) -> str:
        """Where it is, and how it is written."""
        of = f" of {self.datasource_id}" if self.datasource_id else ""
        what = f"table {self.table}" if self.table else str(self.path)
        form = f", as {self.format}" if self.format else ""
        options = f" with {words.enumerated(f'{key}={value}' for key, value in self.options)}" if self.options else ""
        return f"{what}{of}{form}{options}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStep(StepBase):
    """Writes the rows that the selector matches."""

    type: Literal["output"] = "output"
    destination: Destination
    mode: Literal["overwrite", "append"]
    columns: tuple[str, ...]
    include_deleted: bool
    registers: str | None
    """The dataset that the output becomes a version of."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Writing, and registering where it does so."""
        return ("cap.clew.output.v1", *(("cap.clew.register_dataset.v1",) if self.registers else ()))

    @property
    def summary(self) -> str:
        """How many columns it writes, and in which mode."""
        return f"writes {len(self.columns)} columns, {self.mode}"

    def details(self) -> Iterator[Detail]:
        """Its rows, its destination and its columns."""
        yield words.selected(self.selector)
        mode = "replaces what is there" if self.mode == "overwrite" else "adds to what is there"
        yield Detail("writes", (self.destination.described, mode))
        yield Detail("deleted", ("rows are written too" if self.include_deleted else "rows are not written",))
        yield Detail("columns", (words.enumerated(self.columns),))
        if self.registers:
            yield Detail("becomes", (f"the next version of the dataset {self.registers}",))

    def lineage_after(self, state: LineageState) -> LineageState:
        """The working dataset stays as it is."""
        return state

    @property
    def writes_output(self) -> bool:
        """That is what it is for."""
        return True

    @property
    def columns_named(self) -> tuple[str, ...]:
        """The columns that it writes."""
        return self.columns


def plan_output(context: Context, operation: "Output") -> PlannedOperation[OutputStep]:
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
    target = arguments.destination.target
    step = OutputStep(
        **context.identity(operation),
        selector=selector,
        reads=reads([("selector", selector)]),
        adds=(),
        destination=Destination(
            target.datasource_id, target.table, target.path, target.format, _options(target.options)
        ),
        mode=arguments.write_mode.value,
        columns=columns,
        include_deleted=arguments.include_deleted,
        registers=context.catalogue.registered_id(registers) if registers is not None else None,
    )
    return PlannedOperation(step, context.state)


def _columns(context: Context, operation: "Output") -> tuple[str, ...] | None:
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


def _options(options: Mapping[str, "Scalar"]) -> tuple[tuple[str, str], ...]:
    """Options as Spark takes them. One without a value is one that is not set."""
    return tuple(sorted((name, _option_text(value)) for name, value in options.items() if value is not None))


def _option_text(value: "Scalar") -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
