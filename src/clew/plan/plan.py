"""A plan: a compiled, checked, immutable project. It is what a run executes and a reviewer approves.

It keeps the column lineage of its end; that of an earlier step, such as an output, is computed from the steps.
"""

from clew.deferred import dataclass
from clew.plan.columns import Column
from clew.plan.datasets import DatasetUse
from clew.plan.lineage import ColumnLineage, LineageState
from clew.plan.operations import OutputStep, Step
from clew.plan.planned_checks import PlannedCheck
from clew.plan.planned_controls import PlannedControl
from clew.plan.planned_parameters import PlannedParameter
from clew.plan.postlude import PostludeJob

PLAN_FORMAT = 1
"""Version of the JSON form. A reader refuses plans with a higher one."""
_DIGITS_OF_DIGEST = 12


@dataclass(frozen=True, slots=True)
class NamedSelector:
    """A named selector, verbatim as the project or the fragment has it."""

    name: str
    expression: str
    path: str
    """The instance path of its fragment, "main" for the project's own."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A labelled point after a step, addressable by its qualified name whatever the engine does with the steps."""

    name: str
    """plan::instance path::label."""
    label: str
    path: str
    seq: int


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that an engine must be able to do for this plan, and the steps because of which."""

    name: str
    needed_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FrozenResolver:
    """A resolver as its file was when a version was activated."""

    id: str
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Extensions:
    """What goes beyond the steps themselves."""

    postlude_jobs: tuple[PostludeJob, ...] = ()
    controls: tuple[PlannedControl, ...] = ()
    parameters: tuple[PlannedParameter, ...] = ()
    """With their defaults, or with the values of a run where the plan is that of one."""
    resolvers: tuple[FrozenResolver, ...] = ()
    """Those that an activated version keeps, by id; none in drafts and in versions of an older Clew."""
    checks: tuple[PlannedCheck, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A project with everything resolved that can be before a run: the same on every machine."""

    format: int = PLAN_FORMAT
    name: str
    """The project's id, or a name made from the digest where it has none."""
    title: str
    project_version: int | None
    input: DatasetUse
    selectors: tuple[NamedSelector, ...]
    steps: tuple[Step, ...]
    columns: tuple[Column, ...]
    """The data columns of the working dataset after the last step."""
    lineage: tuple[ColumnLineage, ...]
    breakpoints: tuple[Breakpoint, ...]
    capabilities: tuple[Capability, ...]
    extensions: Extensions
    digest: str
    """SHA-256 over all that decides results; places, descriptions and the version number do not count."""

    def __str__(self) -> str:
        from clew.plan.plan_text import plan_text  # noqa: PLC0415 - reading a trace prints no plan

        heading = (
            f"{self.name}  {self.title}" if self.title != self.name else self.name,
            f"  version {self.project_version}, digest {self.digest[:_DIGITS_OF_DIGEST]}",
        )
        parameters = self.extensions.parameters
        return plan_text(heading, self.input, parameters, self.steps, self.columns, self.lineage_at_end)

    @property
    def outputs(self) -> tuple[OutputStep, ...]:
        """The steps that write."""
        return tuple(step for step in self.steps if isinstance(step, OutputStep))

    @property
    def lineage_at_end(self) -> tuple[ColumnLineage, ...]:
        """The lineage of the columns that the working dataset has at the end, without those that were dropped."""
        dropped = {name for step in self.steps for name in step.columns_dropped}
        return tuple(each for each in self.lineage if each.column not in dropped)

    @property
    def controls(self) -> tuple[PlannedControl, ...]:
        """The control totals."""
        return self.extensions.controls

    @property
    def checks(self) -> tuple[PlannedCheck, ...]:
        """What must be true of rows on the way."""
        return self.extensions.checks

    def registering(self, dataset: str) -> OutputStep:
        """The output that becomes a version of a dataset."""
        return next(step for step in self.outputs if step.registers == dataset)

    @property
    def datasets_read(self) -> tuple[DatasetUse, ...]:
        """Every dataset that the plan reads, the input first; one that it reads twice comes twice."""
        checked = (use for check in self.checks for use in check.datasets)
        return (self.input, *(each.use for step in self.steps for each in step.datasets), *checked)

    @property
    def reads_protected(self) -> bool:
        """Whether it reads anything that is personal or secret."""
        return any(
            use.labels_privacy or any(column.privacy is not None for column in use.columns)
            for use in self.datasets_read
        )

    @property
    def datasets_becoming_rows(self) -> tuple[DatasetUse, ...]:
        """The datasets whose rows become rows of the working dataset, or are summed up into such rows."""
        appended = (each.use for step in self.steps for each in step.datasets if each.becomes_rows)
        return (self.input, *appended)

    def columns_after(self, seq: int) -> tuple[Column, ...]:
        """The data columns of the working dataset after a step; those that were loaded for seq 0."""
        added = (column for step in self.steps if step.seq <= seq for column in step.adds)
        return self.input.schema().with_columns(added).columns


def lineage_after(plan: Plan, seq: int) -> tuple[ColumnLineage, ...]:
    """The lineage of the columns of the working dataset after a step; of those that were loaded for seq 0."""
    return state_after(plan, seq).summary(column.name for column in plan.columns_after(seq))


def state_after(plan: Plan, seq: int) -> LineageState:
    """The origins of all columns after a step, and what has decided by then which rows there are."""
    source = plan.input
    state = LineageState.loaded(source.dataset_id, source.table, [column.name for column in source.columns])
    for step in plan.steps:
        if step.seq <= seq:
            state = step.lineage_after(state)
    return state
