"""A small workspace with personal columns and postlude jobs of every kind."""

from collections.abc import Mapping
from pathlib import Path

CLEW = """
name: people
environments:
  dev:
    spark: {master: "local[2]"}
    retry: {max_attempts: 3, base_delay_ms: 1}
    sinks: &sinks
      shelf: {type: capture_store, path: out/shelf, max_ttl_days: 30}
      log: {type: training_log, path: out/log, max_ttl_days: 3}
      blocked: {type: training_log, path: out/blocked, max_ttl_days: 3}
  prod:
    mode: prod
    state_store: sqlite:///.clew/prod/state.db
    storage_root: .clew/prod/storage
    spark: {master: "local[2]"}
    captures: {personal_columns: mask, mask: {keep_last: 1}}
    sinks: *sinks
"""
PROJECT = """
id: greet
status: active
input_dataset: people
operations:
  - {seq: 1, name: Greet, type: update, arguments: {assignments: [
      {column: greeting, expression: 'CONCAT("Hello ", name)'}, {column: half, expression: amount / 2}]}}
  - {seq: 2, name: Drop, type: delete, selector: amount < 0, assign: kept, after_request: [
      {name: every-task, tasks: [
        {filter: amount < 900}, {describe: {columns: [amount]}}, {histogram: {column: amount, bins: 4}},
        {topk: {column: city, k: 2}}, {take: 50}, {sample: {rows: 7}}, {project: [id, city, amount]},
        {serialize_rowset: {format: arrow, mode: raw}}, {emit_training_log: {sink: log, ttl_days: 2}},
        {emit_capture_store: {store: shelf}}]},
      {name: all-rows, tasks: [{serialize_rowset: {format: parquet, mode: raw}}, {emit_training_log: {sink: log}}]},
      {name: only-when-failed, when: 'run.status = "FAILED"', tasks: [{describe: {}}]},
      {name: only-when-many, when: 'run.rows > 1000', tasks: [{describe: {}}]},
      {name: when-as-counted, when: 'run.rows = 180 AND run.period = "2026-01" AND run.environment = "dev"',
       tasks: [{describe: {}}]},
      {name: too-many-rows, budget: {max_rows: 10}, tasks: [{describe: {}}]},
      {name: too-many-bytes, budget: {max_bytes: 10}, tasks: [
        {serialize_rowset: {format: parquet, mode: view}}, {emit_training_log: {sink: log}}]},
      {name: cannot-work, tasks: [{filter: 'TO_INTEGER(city) > 0'}, {describe: {}}]}]}
  - {seq: 3, name: Write, type: output, arguments: {destination: {location: {format: csv, path: out/people}},
     columns: [id, city, half]}}
"""


def write_people(root: Path, project: str = PROJECT, people: int = 200) -> Path:
    """The workspace, with so many people of whom one in ten is deleted."""
    rows = "".join(f"{n},Person {n},pin-{n},City {n % 7},{n * 5 if n % 10 else -1}.00\n" for n in range(people))
    files: Mapping[str, str] = {
        "clew.yaml": CLEW,
        "calendars/year.yaml": "id: y\nlevels: [year, quarter, month]\ngenerate: {first_year: 2026, last_year: 2026}\n",
        "datasources/files.yaml": "{id: files, type: files, options: {root: data}}\n",
        "resolvers/tables.yaml": "id: tables\nis_default: true\nrules: [{name: all, strategy: "
        "{type: path, datasource_id: files, path: '{table}.csv', format: csv}}]\n",
        "datasets/people.yaml": "id: people\nnatural_key: [id]\nmain_table:\n  name: people\n  columns:\n"
        "    - {name: id, type: integer}\n    - {name: name, type: string, privacy: personal}\n"
        "    - {name: pin, type: string, privacy: secret}\n    - {name: city, type: string}\n"
        "    - {name: amount, type: 'decimal(10,2)'}\n",
        "projects/greet.yaml": project,
        "data/people.csv": f"id,name,pin,city,amount\n{rows}",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
