"""A workspace that uses every key there is, read into values and held against the schemas."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from clew.definitions import (
    KINDS,
    Aggregate,
    Append,
    DatabaseDatasource,
    Delete,
    DescribeTaskDefinition,
    EmitCaptureStoreTaskDefinition,
    EmitTrainingLogTaskDefinition,
    FilesDatasource,
    FilterTaskDefinition,
    HistogramTaskDefinition,
    LoadedWorkspace,
    LocationDestination,
    Output,
    PathDestination,
    PathStrategy,
    Project,
    ProjectTaskDefinition,
    SampleTaskDefinition,
    SerializeTaskDefinition,
    Status,
    TableDestination,
    TableStrategy,
    TakeTaskDefinition,
    TemporalMode,
    TopKTaskDefinition,
    Update,
    Use,
    WriteMode,
    load_workspace,
    schema_of,
)
from clew.definitions.nodes import SourceText
from clew.definitions.settings import CaptureMode
from clew.definitions.yaml_nodes import read_yaml
from clew.definitions.yaml_scalars import Value, value_of
from clew.diagnostics import Span, UserError
from clew.lang.types import DATE, DOUBLE, STRING, decimal

ROOT = Path(__file__).parent / "every_key"

KIND_OF_FOLDER = {
    "": "workspace",
    "calendars": "calendar",
    "datasources": "datasource",
    "datasets": "dataset",
    "resolvers": "resolver",
    "projects": "project",
    "fragments": "fragment",
    "scenarios": "scenario",
}
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.yaml"))


@pytest.fixture(scope="module")
def loaded() -> LoadedWorkspace:
    return load_workspace(ROOT)


def test_nothing_is_wrong(loaded: LoadedWorkspace) -> None:
    assert loaded.diagnostics == ()
    assert loaded.workspace.broken == frozenset()


def test_without_the_fast_parser_everything_is_the_same(
    loaded: LoadedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.definitions.yaml_nodes._LOADER", yaml.SafeLoader)
    slow = load_workspace(ROOT)
    assert slow == loaded
    one, other = loaded.workspace.projects[0], slow.workspace.projects[0]
    assert one.place("operations", 0, "after_request", 0, "tasks") == other.place(
        "operations", 0, "after_request", 0, "tasks"
    )


def test_settings(loaded: LoadedWorkspace) -> None:
    settings = loaded.workspace.settings
    assert settings.usual_environment == "prod"
    prod, dev = settings.environments["prod"], settings.environments["dev"]
    assert prod.spark.config == {"spark.sql.shuffle.partitions": 8, "spark.ui.enabled": False}
    assert prod.capture_modes == (CaptureMode.STATS, CaptureMode.SAMPLE_VIEW)
    assert dev.capture_modes == tuple(CaptureMode)
    assert prod.sinks["training"].max_ttl_days == 14
    assert [bus.id for bus in prod.bus] == ["hook", "log", "marquez"]
    assert dev.queue.max_running == 4
    assert (prod.object_store.endpoint, prod.object_store.path_style) == ("https://s3.internal", False)
    assert dev.object_store.is_empty


def test_datasources(loaded: LoadedWorkspace) -> None:
    files, warehouse = loaded.workspace.datasource("files"), loaded.workspace.datasource("Warehouse")
    assert isinstance(files, FilesDatasource)
    assert files.options.root == "data/landing"
    assert isinstance(warehouse, DatabaseDatasource)
    assert warehouse.options.schema == "closing"
    bucket = loaded.workspace.datasource("bucket")
    assert isinstance(bucket, FilesDatasource)
    assert (bucket.options.root, bucket.options.region, bucket.options.path_style) == (
        "s3://deliveries/in",
        "eu-central-1",
        True,
    )


def test_datasets(loaded: LoadedWorkspace) -> None:
    gl = loaded.workspace.dataset("General ledger")
    assert gl is not None
    assert (gl.id, gl.version, gl.status, gl.file) == ("gl", 3, Status.ACTIVE, "datasets/gl.yaml")
    assert gl.may_be_empty
    assert gl.main_table.temporal_mode is TemporalMode.PERIOD
    assert gl.main_table.columns[2].type == decimal(18, 2)
    assert gl.main_table.columns[3].type == DOUBLE
    assert [column.name for column in gl.main_table.all_columns][-1] == "_period"
    period = gl.main_table.column("_PERIOD")
    assert period is not None
    assert period.type == STRING
    fx = loaded.workspace.dataset("fx")
    assert fx is not None
    assert fx.name == "fx"
    assert [(column.name, column.type) for column in fx.main_table.all_columns[2:]] == [
        ("_period_from", DATE),
        ("_period_to", DATE),
    ]


def test_resolvers(loaded: LoadedWorkspace) -> None:
    resolver = loaded.workspace.default_resolver
    assert resolver is not None
    months, widths, rest = resolver.rules
    assert isinstance(widths.strategy, PathStrategy)
    assert (widths.strategy.columns["entry_date"].start, widths.strategy.columns["entry_date"].width) == (1, 8)
    assert isinstance(months.strategy, PathStrategy)
    assert months.strategy.columns["entry_date"].source == "Entry date"
    assert months.strategy.columns["is_open"].false_values == ("no",)
    assert (months.strategy.bad_rows.value, months.strategy.values.nulls) == ("quarantine", ("n/a", "-"))
    assert months.strategy.file_format == "csv"
    assert months.when is not None
    assert months.when.value == 'period.level = "month"'
    assert isinstance(rest.strategy, TableStrategy)
    assert (rest.when, rest.data_level) == (None, "any")


def test_operations(loaded: LoadedWorkspace) -> None:
    project = loaded.workspace.project("close")
    assert project is not None
    assert project.input_dataset.dataset_version == 3
    assert list(project.selectors) == ["posted_only", "large"]
    update, aggregate, append, mapped, delete, tidy, use = project.operations
    assert isinstance(update, Update)
    assert update.arguments.assignments[0].expression.value == "amount * fx.rate"
    assert update.arguments.assignments[1].expression.value == "true"
    assert update.arguments.joins[0].dataset.dataset_version == 1
    assert isinstance(aggregate, Aggregate)
    assert [each.value for each in aggregate.arguments.group_by] == ["transactions.currency", "posted"]
    assert isinstance(append, Append)
    assert append.arguments.aggregation is not None
    assert append.arguments.aggregation.group_by == ()
    assert isinstance(mapped, Append)
    assert mapped.arguments.columns is not None
    assert {name: each.value for name, each in mapped.arguments.columns.items()} == {
        "amount_usd": "amount",
        "journal_id": '"budget"',
    }
    assert isinstance(delete, Delete)
    assert isinstance(tidy, Update)
    assert (tidy.arguments.rename, tidy.arguments.drop) == ({"journal_id": "entry"}, ("account",))
    assert isinstance(use, Use)
    assert (use.seq, use.use.fragment, use.use.alias) == (50, "publish", "final")
    assert {name: each.value for name, each in use.use.arguments.items()} == {"which": "amount_usd > 0"}


def test_tasks_of_a_job_in_their_order(loaded: LoadedWorkspace) -> None:
    project = loaded.workspace.project("close")
    assert project is not None
    update, aggregate = project.operations[:2]
    assert isinstance(update, Update)
    [job] = update.after_request
    assert (job.name, job.budget.timeout_seconds) == ("profile", 30)
    assert [type(task) for task in job.tasks] == [
        FilterTaskDefinition,
        TakeTaskDefinition,
        SampleTaskDefinition,
        ProjectTaskDefinition,
        DescribeTaskDefinition,
        HistogramTaskDefinition,
        TopKTaskDefinition,
        SerializeTaskDefinition,
        EmitTrainingLogTaskDefinition,
        EmitCaptureStoreTaskDefinition,
    ]
    assert [task.name for task in job.tasks][:3] == ["filter", "take", "sample"]
    assert isinstance(aggregate, Aggregate)
    [bare] = aggregate.after_request
    assert [task.name for task in bare.tasks] == ["take"]
    assert bare.budget.timeout_seconds == 60


def test_destinations(loaded: LoadedWorkspace) -> None:
    fragment = loaded.workspace.fragment("publish")
    assert fragment is not None
    outputs = [operation for operation in fragment.operations if isinstance(operation, Output)]
    by_value = outputs.pop()
    divided = outputs.pop()
    assert (divided.arguments.partition_by, by_value.arguments.file_per is not None) == (("account",), True)
    assert [each.value for each in outputs[1].arguments.sort] == ["journal_id", "amount_usd desc"]
    kinds = [type(output.arguments.destination) for output in outputs]
    assert kinds == [TableDestination, PathDestination, LocationDestination, PathDestination, TableDestination]
    modes = [output.arguments.write_mode for output in outputs]
    assert modes == [
        WriteMode.APPEND,
        WriteMode.OVERWRITE,
        WriteMode.APPEND,
        WriteMode.UPSERT,
        WriteMode.REPLACE_PERIOD,
    ]


def test_scenarios(loaded: LoadedWorkspace) -> None:
    by_id, by_path, inline = loaded.workspace.scenarios
    assert by_id.project == "close"
    assert by_id.expected_outputs is not None
    assert list(by_id.expected_outputs) == ["50", "To files"]
    assert by_path.project == loaded.workspace.project("close")
    assert isinstance(inline.project, Project)
    assert [operation.span.line for operation in inline.project.operations] == [19]
    assert inline.datasets[0].rows == (
        {"journal_id": "JE-1", "amount": Decimal("10.00")},
        {"journal_id": "JE-2", "amount": None},
    )
    assert inline.periods[1].start_date == date(2026, 1, 1)
    assert inline.today == date(2026, 2, 3)
    assert inline.expected_trace[0].expected_diff["amount"].new == Decimal("10.00")


def test_every_value_knows_its_place(loaded: LoadedWorkspace) -> None:
    gl = loaded.workspace.dataset("gl")
    assert gl is not None
    file = "datasets/gl.yaml"
    assert gl.span == Span(file, 1, 1, 2)
    assert gl.place("version") == Span(file, 4, 10, 1)
    assert gl.place("natural_key", 1) == Span(file, 7, 27, 11)
    assert gl.place("main_table", "columns", 2, "type") == Span(file, 14, 28, 15)
    assert gl.main_table.columns[2].place("type") == Span(file, 14, 28, 15)
    assert gl.main_table.columns[2].place_of_key("type") == Span(file, 14, 22, 4)
    assert gl.main_table.columns[2].place("privacy") == gl.main_table.columns[2].span
    inline = loaded.workspace.scenarios[2]
    assert inline.place("datasets", 0, "rows", 1, "amount") == Span("scenarios/inline.yaml", 14, 36, 4)


def test_places_play_no_part_in_equality() -> None:
    one, other = load_workspace(ROOT).workspace, load_workspace(ROOT).workspace
    assert one.projects == other.projects
    assert hash(one.projects) == hash(other.projects)
    joins = [project.operations[0] for project in (one.projects[0], other.projects[0])]
    assert joins[0] == joins[1]
    assert joins[0] != one.projects[0].operations[1]


def test_values_cannot_be_changed(loaded: LoadedWorkspace) -> None:
    with pytest.raises(AttributeError):
        loaded.workspace.projects[0].id = "other"  # type: ignore[misc]


def as_json(value: Value) -> object:
    """What an editor makes of a file: dates are strings, and all numbers are numbers."""
    match value:
        case date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case tuple():
            return [as_json(item) for item in value]
        case dict():
            return {key: as_json(item) for key, item in value.items()}
        case _:
            return value


def data_of(file: str) -> object:
    tree = read_yaml(SourceText(file, (ROOT / file).read_text()))
    assert tree.root is not None
    return as_json(value_of(tree.root))


def kind_of(file: str) -> str:
    return KIND_OF_FOLDER[file.rpartition("/")[0]]


@pytest.mark.parametrize("file", FILES)
def test_every_file_is_valid_by_the_schema_of_its_kind(file: str) -> None:
    jsonschema.Draft202012Validator(schema_of(kind_of(file))).validate(data_of(file))


@pytest.mark.parametrize("kind", KINDS)
def test_the_schemas_are_schemas_and_describe_every_key(kind: str) -> None:
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert str(schema["title"]).startswith(f"Clew {kind}")
    for record in records_in(schema):
        assert record["additionalProperties"] is False
        for name, key in record["properties"].items():
            assert key.get("description") or name in TASKS_WITH_ARGUMENTS, name


TASKS_WITH_ARGUMENTS = {
    "sample",
    "describe",
    "histogram",
    "topk",
    "serialize_rowset",
    "emit_training_log",
    "emit_capture_store",
}


def records_in(schema: object) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "properties" in schema and isinstance(schema.get("additionalProperties"), bool):
            yield schema
        for part in schema.values():
            yield from records_in(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from records_in(part)


def test_no_key_is_left_out_of_these_files() -> None:
    declared = {name for kind in KINDS for record in records_in(schema_of(kind)) for name in record["properties"]}
    written = {name for file in FILES for name in names_in(data_of(file))}
    assert declared - written == set()


def names_in(data: object) -> Iterator[str]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield name
            yield from names_in(value)
    elif isinstance(data, list):
        for item in data:
            yield from names_in(item)


@pytest.mark.parametrize(
    ("file", "wrong"),
    [
        ("datasets/gl.yaml", {"versoin": 1}),
        ("datasets/gl.yaml", {"version": 0}),
        ("datasets/gl.yaml", {"id": "a b"}),
        ("datasets/gl.yaml", {"main_table": {"name": "t", "columns": [{"name": "a", "type": "strng"}]}}),
        ("calendars/civil.yaml", {"generate": {"first_year": 2026}}),
        ("datasources/files.yaml", {"type": "kafka"}),
        ("resolvers/monthly.yaml", {"rules": []}),
        ("projects/close.yaml", {"operations": [{"seq": 1, "name": "x", "type": "upsert"}]}),
        ("projects/close.yaml", {"operations": [{"seq": 1, "name": "x", "type": "delete", "arguments": {"a": 1}}]}),
        ("scenarios/by_id.yaml", {"project": 5}),
        ("clew.yaml", {"environments": {"dev": {"mode": "test"}}}),
    ],
)
def test_the_schemas_refuse_what_loading_refuses(file: str, wrong: dict[str, object]) -> None:
    data = data_of(file)
    assert isinstance(data, dict)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema_of(kind_of(file))).validate(data | wrong)


def test_an_unknown_kind_has_no_schema() -> None:
    with pytest.raises(UserError) as caught:
        schema_of("datset")
    assert caught.value.code == "UnknownKind"
    assert caught.value.diagnostic.hint == 'did you mean "dataset"?'
