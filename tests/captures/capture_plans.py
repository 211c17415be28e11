"""Plans and policies to ask captures of."""

from collections.abc import Mapping
from pathlib import Path

import clew
from clew.captures.policy import CapturePolicy
from clew.definitions import Environment
from clew.definitions.data_nodes import node_of
from clew.definitions.shapes import Record
from clew.plan import Plan

PEOPLE: Mapping[str, str] = {
    "clew.yaml": "name: people\n",
    "calendars/year.yaml": "id: y\nlevels: [year, quarter, month]\ngenerate: {first_year: 2026, last_year: 2026}\n",
    "datasources/files.yaml": "{id: files, type: files, options: {root: data}}\n",
    "resolvers/tables.yaml": """
id: tables
is_default: true
rules: [{name: all, strategy: {type: path, datasource_id: files, path: "{table}.csv"}}]
""",
    "datasets/people.yaml": """
id: people
natural_key: [id]
main_table:
  name: people
  columns:
    - {name: id, type: integer}
    - {name: name, type: string, privacy: personal}
    - {name: pin, type: string, privacy: secret}
    - {name: city, type: string}
    - {name: amount, type: "decimal(10,2)"}
""",
    "projects/greet.yaml": """
id: greet
input_dataset: people
operations:
  - {seq: 1, name: Greet, type: update, assign: greeted,
     arguments: {assignments: [{column: greeting, expression: 'CONCAT("Hello ", name)'}]}}
  - {seq: 2, name: Key, type: update, arguments: {assignments: [{column: door, expression: 'CONCAT(pin, city)'}]}}
  - {seq: 3, name: Note, type: update, assign: noted,
     arguments: {assignments: [{column: size, expression: amount * 2}]}}
  - {seq: 4, name: Drop, type: delete, selector: amount < 0, assign: kept}
""",
}


def people_plan(folder: Path, project: str | None = None) -> Plan:
    """A plan over rows with personal and secret columns."""
    for name, text in {**PEOPLE, **({"projects/greet.yaml": project} if project else {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return clew.open(folder).plan("greet")


def policy(role: str = "engineer", **environment: object) -> CapturePolicy:
    """The policy of an environment with these settings."""
    return CapturePolicy.of("here", environment_of(**environment), role)


def environment_of(**settings: object) -> Environment:
    """An environment with these settings."""
    return Record(Environment).read(node_of(settings, "<test>"))
