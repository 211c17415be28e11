"""Random projects over random tables, as the files of a workspace."""

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from clew.definitions import load_workspace
from clew.plan import Plan, compile_workspace
from tests.trace.recorded_interpretation import Recorded

PERIOD = "2026-01"
_WORDS = ["EUR", "USD", "ß", "naïve", "", "x", '"', "名前"]
_NUMBERS = [Decimal("0.00"), Decimal("1.50"), Decimal("-3.25"), Decimal("99.99"), Decimal("1000.00")]
COLUMNS = {
    "k": "integer",
    "amount": "decimal(12,2)",
    "currency": "string",
    "flag": "boolean",
    "day": "date",
    "at": "timestamp",
    "share": "double",
}
DATASETS: dict[str, dict[str, Any]] = {
    "main": {"columns": COLUMNS, "mode": "period", "table": "t", "key": ["k"]},
    "dim": {"columns": {"code": "string", "rate": "decimal(18,6)", "label": "string"}, "mode": "none", "table": "dim"},
    "extra": {
        "columns": {"k": "integer", "amount": "decimal(12,2)", "currency": "string"},
        "mode": "none",
        "table": "x",
    },
    "finer": {
        "columns": {"k": "decimal(12,2)", "amount": "decimal(18,6)", "share": "decimal(18,6)", "currency": "string"},
        "mode": "none",
        "table": "f",
    },
    "prices": {"columns": {"code": "string", "price": "decimal(12,2)"}, "mode": "bitemporal", "table": "price"},
}

_CONDITIONS = [
    "amount > 1",
    'currency = "EUR"',
    'currency IN ("USD", "x") AND amount IS NOT NULL',
    "flag",
    "NOT flag OR k < 3",
    'day >= DATE("2026-01-15")',
    "share > 0.5",
    "amount IS NULL",
    "k < 0",
    'LEN(currency) > 2 AND _labels <> "a"',
    'CONTAINS(_labels, "a")',
    "MOD(k, 2) = 0",
    "TRUE",
]
_ASSIGNMENTS = [
    ("amount", "ROUND(amount * 1.1, 2)"),
    ("amount", "NULL"),
    ("amount", "IF(flag, 5.00, amount)"),
    ("currency", 'CONCAT(currency, "+")'),
    ("currency", '"EUR"'),
    ("flag", "k > 2"),
    ("day", "DATEADD(day, k)"),
    ("share", "share / 2"),
    ("k", "k + 1"),
    ("_labels", 'CONCAT(_labels, "a")'),
    ("doubled", "amount * 2"),
    ("doubled", "TO_DECIMAL(k, 14, 2)"),
    ("note", 'COALESCE(currency, "none")'),
    ("today", "TODAY()"),
]
WINDOWS = [
    ("amount", "IFNULL(SUM(amount) OVER (PARTITION BY currency ORDER BY day, k desc), amount)"),
    ("before", "LAG(amount) OVER (PARTITION BY flag ORDER BY at desc)"),
    ("after", "LEAD(UPPER(currency), 2) OVER (ORDER BY share, at)"),
    ("place", "RANK() OVER (PARTITION BY currency ORDER BY amount desc) + DENSE_RANK() OVER (ORDER BY day, flag desc)"),
    ("number", "ROW_NUMBER() OVER (PARTITION BY share, flag ORDER BY k)"),
    ("part", "ROUND(amount / SUM(amount) OVER (PARTITION BY day), 4)"),
    ("moving", "AVG(amount) OVER (PARTITION BY _labels ORDER BY at ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"),
    ("until", "SUM(k) OVER (ORDER BY at ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)"),
    ("first", "FIRST(amount, day, k) OVER (PARTITION BY currency)"),
    ("least", "MIN_AGG(at) OVER (PARTITION BY flag ORDER BY share desc)"),
    ("many", "COUNT_ALL() OVER () * 100 + COUNT(day) OVER (PARTITION BY k ORDER BY currency)"),
    ("k", "COUNT_IF(flag) OVER (PARTITION BY currency)"),
]
"""Calls with OVER. Rows that are equal in an order stand in that of their ordinals, which only loaded rows share with
those of Spark: `at IS NOT NULL` selects these."""
_FINER = [
    {"group_by": ["f.k", "f.currency"], "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]},
    {"group_by": ["f.amount"], "aggregations": [{"column": "k", "expression": "COUNT_ALL()"}]},
    {"group_by": ["f.share", "f.k"], "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]},
]
"""Summaries whose keys may become equal in the working dataset."""
_JOINED_ASSIGNMENTS = [
    ("rate", "dim.rate"),
    ("amount", "ROUND(amount * COALESCE(dim.rate, 1), 2)"),
    ("note", "dim.label"),
    ("currency", "COALESCE(dim.label, t.currency)"),
]
_PRICED = [
    ("price", "then.price"),
    ("amount", "IFNULL(then.price, t.amount)"),
    ("note", "TO_STRING(then._period_from)"),
]
_AS_OF = ["day", "PERIOD_END()", "PERIOD_START()", "DATEADD(day, 10)"]
_TIDYING: list[dict[str, Any]] = [
    {"rename": {"amount": "value"}, "drop": ["flag", "share"]},
    {"drop": ["currency"]},
    {
        "assignments": [{"column": "half", "expression": "amount / 2"}],
        "rename": {"currency": "unit"},
        "drop": ["amount"],
    },
]


@st.composite
def projects(draw: st.DrawFn, most_steps: int = 7) -> dict[str, Any]:
    operations = list[dict[str, Any]]()
    seq = 0
    for _ in range(draw(st.integers(1, most_steps))):
        seq += draw(st.integers(1, 9))
        operations.append({"seq": seq, "name": f"step {seq}", **draw(_operations())})
    if draw(st.integers(0, 3)) == 0:
        tidy = {"type": "update", "arguments": draw(st.sampled_from(_TIDYING))}
        operations.append({"seq": seq + 1, "name": "tidy", **tidy})
        marking = {"assignments": [{"column": "tidied", "expression": "k IS NOT NULL"}]}
        operations.append({"seq": seq + 2, "name": "after", "type": "update", "arguments": marking})
    return {"id": "p", "name": "p", "version": 1, "status": "active", "input_dataset": "main", "operations": operations}


_HAVING = ["COUNT_ALL() > 1", "SUM(amount) > 0 OR MAX_AGG(k) < 3", "SUM(amount) / COUNT(amount) > 10"]


@st.composite
def _deletes_of_duplicates(draw: st.DrawFn) -> dict[str, Any]:
    """Only loaded rows have `at`: the order of those that Spark created is its own."""
    keys = draw(st.lists(st.sampled_from(["currency", "flag", "share", "day", "_labels"]), min_size=1, max_size=2))
    order = draw(st.lists(st.sampled_from(["amount", "share", "day", "currency", "at"]), max_size=2, unique=True))
    directed = [f"{name}{draw(st.sampled_from(['', ' desc', ' asc']))}" for name in order]
    keep = draw(st.sampled_from(["first", "last"]))
    arguments = {"keep": keep, "keys": list(dict.fromkeys(keys)), "order": directed}
    return {"type": "delete", "selector": "at IS NOT NULL", "arguments": arguments}


_MAPPED = [
    {"amount": "IF(x.amount > 2, x.amount, NULL)", "currency": 'CONCAT(x.currency, "!")'},
    {"currency": '"EUR"', "flag": "x.amount IS NULL"},
]


@st.composite
def _operations(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["update"] * 5 + ["delete", "delete", "aggregate", "append", "output"]))
    selector = draw(st.none() | st.sampled_from(_CONDITIONS))
    chosen = {} if selector is None else {"selector": selector}
    match kind:
        case "update":
            joins = draw(st.booleans())
            pool = _ASSIGNMENTS + (_JOINED_ASSIGNMENTS * 2 if joins else [])
            assignments = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique_by=lambda each: each[0]))
            listed = [{"column": column, "expression": text} for column, text in assignments]
            join = {"joins": [{"alias": "dim", "dataset_id": "dim", "on": "dim.code = t.currency"}]} if joins else {}
            if joins and draw(st.integers(0, 2)) == 0:
                day = draw(st.sampled_from(_AS_OF))
                then = {"alias": "then", "dataset_id": "prices", "on": "then.code = t.currency", "as_of": day}
                priced = draw(st.lists(st.sampled_from(_PRICED), min_size=1, unique_by=lambda each: each[0]))
                listed = [{"column": column, "expression": text} for column, text in priced]
                join = {"joins": [then]}
            if not joins and draw(st.integers(0, 2)) == 0:
                several = draw(
                    st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=2, unique_by=lambda each: each[0])
                )
                listed = [{"column": column, "expression": text} for column, text in several]
                chosen = {"selector": f"at IS NOT NULL AND ({selector or 'TRUE'})"}
            return {"type": "update", **chosen, "arguments": {**join, "assignments": listed}}
        case "delete" if draw(st.integers(0, 2)) == 0:
            return draw(_deletes_of_duplicates())
        case "delete":
            return {"type": "delete", "selector": selector or "amount > 50"}
        case "aggregate":
            group_by = draw(st.sampled_from([["currency"], ["currency", "flag"], ["_period"], ["day", "k"]]))
            aggregations = [
                {"column": "total", "expression": "SUM(amount)"},
                {"column": "rows", "expression": "COUNT_ALL()"},
                {"column": "most", "expression": "MAX_AGG(at)"},
            ]
            arguments: dict[str, Any] = {"group_by": group_by, "aggregations": aggregations}
            if draw(st.integers(0, 2)) == 0:
                arguments["having"] = draw(st.sampled_from(_HAVING))
            return {"type": "aggregate", **chosen, "arguments": arguments}
        case "append":
            condition = draw(st.none() | st.sampled_from(["x.amount > 1", 'x.currency = "EUR"']))
            arguments = {"source": {"dataset_id": "extra"}}
            if condition is not None:
                arguments["source_selector"] = condition
            if draw(st.booleans()):
                totals = [{"column": "amount", "expression": "SUM(amount)"}]
                arguments["aggregation"] = {"group_by": ["x.currency"], "aggregations": totals}
            elif draw(st.booleans()):
                arguments = {"source": {"dataset_id": "finer"}, "aggregation": draw(st.sampled_from(_FINER))}
            elif draw(st.booleans()):
                arguments["columns"] = draw(st.sampled_from(_MAPPED))
            return {"type": "append", "arguments": arguments}
        case _:
            location = {"format": "parquet", "path": "out"}
            columns = ["k", "amount", "currency", "_labels"]
            return {
                "type": "output",
                **chosen,
                "arguments": {"destination": {"location": location}, "columns": columns},
            }


def _cells(type_: str) -> st.SearchStrategy[Any]:
    values: dict[str, st.SearchStrategy[Any]] = {
        "integer": st.integers(-3, 9),
        "decimal(12,2)": st.sampled_from(_NUMBERS),
        "decimal(18,6)": st.sampled_from([Decimal("1.092000"), Decimal("1.094000"), Decimal("0.500000")]),
        "string": st.sampled_from(_WORDS),
        "boolean": st.booleans(),
        "date": st.dates(date(2025, 12, 1), date(2026, 2, 28)),
        "timestamp": st.datetimes(datetime(2025, 1, 1), datetime(2026, 12, 31)),  # noqa: DTZ001
        "double": st.floats(0, 1),
    }
    return st.none() | values[type_] | values[type_] | values[type_]


@st.composite
def tables(draw: st.DrawFn, most_rows: int = 12) -> dict[str, list[dict[str, Any]]]:
    def rows(columns: dict[str, str]) -> list[dict[str, Any]]:
        return draw(st.lists(st.fixed_dictionaries({n: _cells(t) for n, t in columns.items()}), max_size=most_rows))

    main = [{**row, "_period": PERIOD} for row in rows(COLUMNS)]
    codes = draw(st.lists(st.sampled_from(_WORDS), unique=True))
    dim = [{**row, "code": code} for row, code in zip(rows(DATASETS["dim"]["columns"]), codes, strict=False)]
    prices = [
        {"code": code, "price": draw(_cells("decimal(12,2)")), "_period_from": begin, "_period_to": end}
        for code in draw(st.lists(st.sampled_from(_WORDS), unique=True))
        for begin, end in ((date(2025, 12, 1), date(2026, 1, 15)), (date(2026, 1, 15), None))
    ]
    return {
        "main": main,
        "dim": dim,
        "prices": prices,
        **{name: rows(DATASETS[name]["columns"]) for name in ("extra", "finer")},
    }


def write_workspace(folder: Path, project: dict[str, Any], datasets: dict[str, dict[str, Any]] = DATASETS) -> None:
    """JSON is YAML."""
    period = {"identifier": PERIOD, "level": "month", "start_date": "2026-01-01", "end_date": "2026-01-31"}
    files: dict[str, object] = {
        "clew.yaml": {"name": "w", "default_environment": "dev", "environments": {"dev": {"mode": "dev"}}},
        "calendars/c.yaml": {"id": "c", "levels": ["month"], "periods": [period]},
        "datasources/f.yaml": {"id": "f", "type": "files", "options": {"root": "."}},
        "resolvers/r.yaml": {
            "id": "r",
            "name": "r",
            "version": 1,
            "status": "active",
            "is_default": True,
            "rules": [{"name": "a", "strategy": {"type": "path", "datasource_id": "f", "path": "{table}.csv"}}],
        },
        "projects/p.yaml": project,
    }
    for name, dataset in datasets.items():
        columns = [{"name": column, "type": type_} for column, type_ in dataset["columns"].items()]
        table = {"name": dataset["table"], "temporal_mode": dataset["mode"], "columns": columns}
        files[f"datasets/{name}.yaml"] = {
            "id": name,
            "name": name,
            "version": 1,
            "status": "active",
            "natural_key": dataset.get("key", []),
            "main_table": table,
        }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(content, default=str), encoding="utf-8")


def compiled(folder: Path, project: dict[str, Any], datasets: dict[str, dict[str, Any]] = DATASETS) -> Plan | None:
    """The plan of a project, None where the random project makes no sense."""
    write_workspace(folder, project, datasets)
    loaded = load_workspace(folder)
    assert not loaded.diagnostics, loaded.diagnostics
    return compile_workspace(loaded.workspace).plans.get("p")


def interpreted(plan: Plan, data: dict[str, list[dict[str, Any]]], today: date) -> Recorded:
    return Recorded(plan, data, PERIOD, today).run()
