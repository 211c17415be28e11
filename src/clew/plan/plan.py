"""A plan: a compiled, checked, immutable project. What a run executes and a reviewer approves."""

from dataclasses import dataclass

from clew.plan.columns import Column
from clew.plan.datasets import DatasetUse
from clew.plan.lineage import ColumnLineage
from clew.plan.postlude import PostludeJob
from clew.plan.steps import Step

PLAN_FORMAT = 1
"""Version of the JSON form. A reader refuses plans with a higher one."""


@dataclass(frozen=True, slots=True)
class NamedSelector:
    """A named selector, verbatim as the project or the fragment has it."""

    name: str
    expression: str
    path: str
    """The instance path of its fragment, "main" for the project's own."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A labelled point behind a step, addressable by its qualified name whatever the engine does with the steps."""

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
class Extensions:
    """What goes beyond the steps themselves."""

    postlude_jobs: tuple[PostludeJob, ...] = ()


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

    def columns_after(self, seq: int) -> tuple[Column, ...]:
        """The data columns of the working dataset after a step; those that were loaded for seq 0."""
        added = (column for step in self.steps if step.seq <= seq for column in step.adds)
        return self.input.schema().with_columns(added).columns
