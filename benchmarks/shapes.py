"""Jobs of several shapes, each as a Clew project on files of the user's own, and as SQL written for Spark by hand."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

_CALENDAR = {"id": "year", "levels": ["year", "month"], "generate": {"first_year": 2026, "last_year": 2026}}
_ENVIRONMENT = {"spark": {"master": "local[2]", "config": {"spark.driver.memory": "4g"}}}
_LINES = {
    "id": ("integer", "i"),
    "account": ("integer", "i % 1000"),
    "currency": ("string", "['EUR', 'USD', 'GBP', 'USD'][1 + i % 4]"),
    "amount": ("decimal(18,2)", "((i * 7919) % 1000000 / 100)::DECIMAL(18, 2)"),
    "note": ("string", "'posting ' || (i % 977)"),
}
_RATES = {
    "currency": ("string", "['EUR', 'USD', 'GBP'][1 + i]"),
    "rate": ("decimal(18,6)", "(1 + i * 0.125)::DECIMAL(18, 6)"),
}
Columns = Mapping[str, tuple[str, str]]
"""The type of each column, and DuckDB's SQL for its value in row `i`."""


@dataclass(frozen=True, slots=True)
class Table:
    """A dataset, and how many rows it has for each row of the shape."""

    columns: Columns
    share: float = 1.0
    rows: int | None = None
    """Where the number does not depend on that of the shape."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A job."""

    rows: int
    tables: Mapping[str, Table]
    """The first is the input."""
    operations: Sequence[Mapping[str, Any]]
    by_hand: str
    """SQL over views with the names of the tables, for the rows of the output."""
    output: Sequence[str]
    format: str = "parquet"
    at_most: float = 1.6


def update(name: str, column: str, expression: str, selector: str | None = None, **join: str) -> dict[str, Any]:
    """An operation that sets a column; `alias="condition"` joins the dataset of that name."""
    joins = [{"alias": alias, "dataset_id": alias, "on": on} for alias, on in join.items()]
    arguments = {"assignments": [{"column": column, "expression": expression}], **({"joins": joins} if joins else {})}
    chosen = {} if selector is None else {"selector": selector}
    return {"name": name, "type": "update", **chosen, "arguments": arguments}


def totals(keys: Sequence[str], column: str, expression: str) -> dict[str, Any]:
    """An operation that sums up."""
    aggregations = [{"column": column, "expression": expression}]
    return {"name": "Totals", "type": "aggregate", "arguments": {"group_by": list(keys), "aggregations": aggregations}}


_FIVE = [
    update(
        "Convert",
        "amount",
        "ROUND(amount * rates.rate, 2)",
        'lines.currency <> "USD"',
        rates="rates.currency = lines.currency",
    ),
    update("Note", "note", 'CONCAT(note, " large")', "amount > 8100"),
    update("Flag", "flag", '"review"', "MOD(id, 20) = 1"),
    {"name": "Drop", "type": "delete", "selector": "MOD(id, 20) = 7"},
    totals(["account"], "total", "SUM(amount)"),
]
_FIVE_BY_HAND = """
WITH kept AS (
    SELECT l.id, l.account, l.currency,
        CASE WHEN l.currency = 'USD' THEN l.amount ELSE CAST(round(l.amount * r.rate, 2) AS DECIMAL(18, 2)) END
            AS amount, l.note, CASE WHEN l.id % 20 = 1 THEN 'review' END AS flag
    FROM lines l LEFT JOIN rates r ON r.currency = l.currency WHERE l.id % 20 <> 7),
noted AS (SELECT id, account, currency, amount,
    CASE WHEN amount > 8100 THEN concat(note, ' large') ELSE note END AS note, flag FROM kept)
SELECT id, account, currency, amount, note, flag, CAST(NULL AS DECIMAL(28, 2)) AS total FROM noted
UNION ALL SELECT NULL, account, NULL, NULL, NULL, NULL, sum(amount) FROM noted GROUP BY account
"""
_FIVE_OUTPUT = ["id", "account", "currency", "amount", "note", "flag", "total"]
_WIDE = {"id": _LINES["id"]} | {f"c{n}": ("integer", f"(i * {n + 3}) % 1000") for n in range(99)}
_WIDE_BY_HAND = ", ".join(
    f"CASE WHEN id % 10 = {n // 2} THEN c{n} + 1 ELSE c{n} END AS c{n}" if n < 16 else f"c{n}" for n in range(99)
)
_LONG = _LINES | {"note": ("string", "repeat('text ' || (i % 977) || ' ', 200)")}
_SKEWED = _LINES | {"account": ("integer", "CASE WHEN i % 10 < 9 THEN 0 ELSE i % 100000 END")}
_PARTIES = {"party": ("integer", "i"), "region": ("string", "'region ' || (i % 50)")}


def _twice(column: int) -> dict[str, Any]:
    both = [{"column": f"c{n}", "expression": f"c{n} + 1"} for n in (column, column + 1)]
    selector = f"MOD(id, 10) = {column // 2}"
    return {"name": f"Add {column}", "type": "update", "selector": selector, "arguments": {"assignments": both}}


def _joined(accounts: Columns, by: str) -> tuple[list[dict[str, Any]], str]:
    operations = [update("Region", "region", "parties.region", parties=f"parties.party = {by}")]
    chosen = ", ".join(f"l.{name}" for name in accounts)
    return operations, f"SELECT {chosen}, p.region FROM lines l LEFT JOIN parties p ON p.party = l.{by}"


_LARGE_JOIN, _LARGE_JOIN_BY_HAND = _joined(_LINES, "id")
_SKEWED_JOIN, _SKEWED_JOIN_BY_HAND = _joined(_SKEWED, "account")

SHAPES: Mapping[str, Shape] = {
    "five steps, external Parquet": Shape(
        5_000_000, {"lines": Table(_LINES), "rates": Table(_RATES, rows=3)}, _FIVE, _FIVE_BY_HAND, _FIVE_OUTPUT,
        at_most=1.5,
    ),
    "five steps, external CSV": Shape(
        2_000_000, {"lines": Table(_LINES), "rates": Table(_RATES, rows=3)}, _FIVE, _FIVE_BY_HAND, _FIVE_OUTPUT,
        format="csv", at_most=1.5,
    ),
    "wide: 100 columns, eight updates of two": Shape(
        600_000, {"lines": Table(_WIDE)}, [_twice(n) for n in range(0, 16, 2)],
        f"SELECT id, {_WIDE_BY_HAND} FROM lines", list(_WIDE),
    ),
    "large join": Shape(
        4_000_000, {"lines": Table(_LINES), "parties": Table(_PARTIES, share=0.5)}, _LARGE_JOIN, _LARGE_JOIN_BY_HAND,
        [*_LINES, "region"],
    ),
    "many groups": Shape(
        3_000_000, {"lines": Table(_LINES | {"account": ("integer", "i // 3")})},
        [totals(["account"], "total", "SUM(amount)")],
        "SELECT id, account, currency, amount, note, CAST(NULL AS DECIMAL(28, 2)) AS total FROM lines "
        "UNION ALL SELECT NULL, account, NULL, NULL, NULL, sum(amount) FROM lines GROUP BY account",
        [*_LINES, "total"],
    ),
    "raw append": Shape(
        5_000_000, {"lines": Table(_LINES, share=0.01), "more": Table(_LINES)},
        [{"name": "More", "type": "append", "arguments": {"source": {"dataset_id": "more"}}}],
        "SELECT * FROM lines UNION ALL SELECT * FROM more", list(_LINES),
    ),
    "40 steps": Shape(
        1_000_000, {"lines": Table(_LINES)},
        [update(f"Add {n}", "amount", "amount + 1", f"MOD(id, 40) = {n}") for n in range(40)],
        "SELECT id, account, currency, CAST(amount + 1 AS DECIMAL(18, 2)) AS amount, note FROM lines", list(_LINES),
    ),
    "windows": Shape(
        2_000_000, {"lines": Table(_LINES)},
        [update("Balance", "balance", "SUM(amount) OVER (PARTITION BY account ORDER BY id)")],
        "SELECT *, sum(amount) OVER (PARTITION BY account ORDER BY id) AS balance FROM lines", [*_LINES, "balance"],
    ),
    "skewed keys": Shape(
        3_000_000, {"lines": Table(_SKEWED), "parties": Table(_PARTIES, share=1 / 30)},
        _SKEWED_JOIN, _SKEWED_JOIN_BY_HAND, [*_LINES, "region"],
    ),
    "long strings": Shape(
        300_000, {"lines": Table(_LONG)},
        [update("Mark", "note", 'CONCAT(note, "!")', "MOD(id, 10) = 3")],
        "SELECT id, account, currency, amount, CASE WHEN id % 10 = 3 THEN concat(note, '!') ELSE note END AS note "
        "FROM lines", list(_LINES),
    ),
}  # fmt: skip


def write_shape(root: Path, shape: Shape, rows: int) -> None:
    """The workspace of a shape, with a project `job` that writes to `out/job`."""
    tables = list(shape.tables)
    rule = {"type": "path", "datasource_id": "data", "path": f"{{dataset}}.{shape.format}", "format": shape.format}
    destination = {"datasource_id": "out", "path": "job"}
    output = {"name": "Publish", "type": "output"} | {
        "arguments": {"destination": destination, "columns": list(shape.output)}
    }
    operations = [{"seq": 10 * n, **each} for n, each in enumerate((*shape.operations, output), start=1)]
    files: dict[str, object] = {
        "clew.yaml": {"name": "bench", "environments": {"dev": _ENVIRONMENT}},
        "calendars/year.yaml": _CALENDAR,
        "datasources/data.yaml": {"id": "data", "type": "files", "options": {"root": "data"}},
        "datasources/out.yaml": {"id": "out", "type": "files", "options": {"root": "out"}},
        "resolvers/files.yaml": {"id": "files", "is_default": True, "rules": [{"name": "files", "strategy": rule}]},
        "projects/job.yaml": {"id": "job", "status": "active", "input_dataset": tables[0], "operations": operations},
    }
    for name, table in shape.tables.items():
        columns = [{"name": column, "type": type_} for column, (type_, _) in table.columns.items()]
        files[f"datasets/{name}.yaml"] = {"id": name, "main_table": {"name": name, "columns": columns}}
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(json.dumps(content), encoding="utf-8")
    (root / "data").mkdir()
    with duckdb.connect() as connection:
        for name, table in shape.tables.items():
            count = table.rows if table.rows is not None else max(1, int(rows * table.share))
            listed = ", ".join(f"{sql} AS {column}" for column, (_, sql) in table.columns.items())
            place = root / "data" / f"{name}.{shape.format}"
            how = "FORMAT parquet, ROW_GROUP_SIZE 100000" if shape.format == "parquet" else "HEADER"
            connection.execute(f"COPY (SELECT {listed} FROM range({count}) AS numbers(i)) TO '{place}' ({how})")
