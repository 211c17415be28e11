"""What users write in a workspace, as frozen values that know their place in the file."""

from clew.model.calendar import Calendar, Period, PeriodTree, periods_of
from clew.model.dataset import Column, Dataset, Privacy, Status, Table, TemporalMode
from clew.model.dataset_ref import DatasetRef
from clew.model.datasource import DatabaseDatasource, Datasource, FilesDatasource
from clew.model.expression_text import ExpressionText
from clew.model.files import find_workspace
from clew.model.fragment import Fragment
from clew.model.kinds import KINDS
from clew.model.loading import load_scenarios, load_workspace
from clew.model.operations import (
    Aggregate,
    Aggregation,
    Append,
    AppendAggregation,
    Assignment,
    Delete,
    Destination,
    FragmentUse,
    Location,
    LocationDestination,
    Operation,
    Output,
    PathDestination,
    RuntimeJoin,
    TableDestination,
    Update,
    Use,
    WriteMode,
)
from clew.model.postlude import Budget, Job, OtherTask, Task
from clew.model.project import Project, project_from_data
from clew.model.resolver import PathStrategy, Resolver, Rule, Strategy, TableStrategy
from clew.model.scalars import Scalar, Value
from clew.model.scenario import (
    ChangeType,
    ExpectedDiff,
    ExpectedError,
    ExpectedOutput,
    ExpectedTrace,
    Match,
    Scenario,
    ScenarioDataset,
)
from clew.model.schemas import schema_of
from clew.model.settings import Environment, Settings
from clew.model.workspace import LoadedWorkspace, Workspace

__all__ = [
    "KINDS",
    "Aggregate",
    "Aggregation",
    "Append",
    "AppendAggregation",
    "Assignment",
    "Budget",
    "Calendar",
    "ChangeType",
    "Column",
    "DatabaseDatasource",
    "Dataset",
    "DatasetRef",
    "Datasource",
    "Delete",
    "Destination",
    "Environment",
    "ExpectedDiff",
    "ExpectedError",
    "ExpectedOutput",
    "ExpectedTrace",
    "ExpressionText",
    "FilesDatasource",
    "Fragment",
    "FragmentUse",
    "Job",
    "LoadedWorkspace",
    "Location",
    "LocationDestination",
    "Match",
    "Operation",
    "OtherTask",
    "Output",
    "PathDestination",
    "PathStrategy",
    "Period",
    "PeriodTree",
    "Privacy",
    "Project",
    "Resolver",
    "Rule",
    "RuntimeJoin",
    "Scalar",
    "Scenario",
    "ScenarioDataset",
    "Settings",
    "Status",
    "Strategy",
    "Table",
    "TableDestination",
    "TableStrategy",
    "Task",
    "TemporalMode",
    "Update",
    "Use",
    "Value",
    "Workspace",
    "WriteMode",
    "find_workspace",
    "load_scenarios",
    "load_workspace",
    "periods_of",
    "project_from_data",
    "schema_of",
]
