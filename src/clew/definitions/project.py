"""Projects, which are ordered operations on one input dataset, and fragments, which projects share."""

from collections.abc import Mapping

from clew.definitions.checks import CHECKS, Check
from clew.definitions.controls import ControlTotal
from clew.definitions.data_nodes import node_of
from clew.definitions.dataset import Status
from clew.definitions.dataset_refs import DATASET_REF, DatasetRef
from clew.definitions.expression_text import ExpressionText
from clew.definitions.operations import OPERATION, Operation, Use
from clew.definitions.parameters import ProjectParameter
from clew.definitions.shapes import (
    EXPRESSION,
    NAME,
    SLUG,
    TEXT,
    Choice,
    Definition,
    ListOf,
    Located,
    MapOf,
    Record,
    Whole,
    key,
    problems_in,
    record,
)
from clew.diagnostics import raise_if_any


@record("a project")
class Project(Definition):
    """An ordered list of operations on one input dataset."""

    id: str = key(SLUG, "The id, unique among projects.")
    name: str = key(NAME, "The name; by default the id.", same_as="id")
    description: str = key(TEXT, "What the project is for.", default="")
    version: int = key(Whole(1), "The version of the definition.", default=1)
    status: Status = key(Choice(Status), "A draft writes to the sandbox only.", default=Status.DRAFT)
    input_dataset: DatasetRef = key(DATASET_REF, "The dataset that the project starts from.")
    selectors: Mapping[str, ExpressionText] = key(
        MapOf(EXPRESSION, "expressions"), "Named selectors, used as {{NAME}}.", default_factory=dict
    )
    parameters: Mapping[str, ProjectParameter] = key(
        MapOf(Record(ProjectParameter), "parameters"),
        "Values that a run is given, by name; expressions read them as param.NAME.",
        default_factory=dict,
    )
    resolver_overrides: Mapping[str, str] = key(
        MapOf(NAME, "resolver ids"), "For a dataset, the resolver to use instead of its own.", default_factory=dict
    )
    controls: tuple[ControlTotal, ...] = key(
        ListOf(Record(ControlTotal), "control totals"), "Amounts that every run follows to its outputs.", default=()
    )
    checks: tuple[Check, ...] = key(
        CHECKS, "What must be true of the rows, after an operation or at the end.", default=()
    )
    operations: tuple[Operation | Use, ...] = key(
        ListOf(OPERATION, "operations"), "The operations, and fragments in place of operations."
    )


INLINE_PROJECT = Record(Project, stand_ins={"id": ""})
"""A project inside another file, where it needs no id."""


def project_from_data(data: Mapping[str, object], origin: str) -> Project:
    """A project from Python data with the keys of a project file. UserError with everything that is wrong.

    `origin` stands for the file in messages. Keys whose value is None count as absent, and the id may be: the plan of
    such a project names itself by its digest.
    """
    project = INLINE_PROJECT.read(node_of(data, origin))
    raise_if_any(problems_in(project))
    return project


@record("an argument of a fragment")
class FragmentArgument(Located):
    """An expression that each use of the fragment gives, read as `arg.NAME`."""

    default: ExpressionText | None = key(
        EXPRESSION, "The expression where a use gives none. Without a default, every use must give one.", default=None
    )
    description: str = key(TEXT, "What it is for.", default="")


@record("a fragment")
class Fragment(Definition):
    """A named list of operations that projects and other fragments use."""

    id: str = key(SLUG, "The id, unique among fragments.")
    name: str = key(NAME, "The name; by default the id.", same_as="id")
    description: str = key(TEXT, "What the fragment is for.", default="")
    selectors: Mapping[str, ExpressionText] = key(
        MapOf(EXPRESSION, "expressions"),
        "Its own named selectors, seen before those of the project.",
        default_factory=dict,
    )
    arguments: Mapping[str, FragmentArgument] = key(
        MapOf(Record(FragmentArgument), "arguments"),
        "Expressions that each use gives, by name; the fragment reads them as arg.NAME.",
        default_factory=dict,
    )
    operations: tuple[Operation | Use, ...] = key(
        ListOf(OPERATION, "operations", at_least=1), "The operations, and other fragments in place of operations."
    )
