"""What only Spark can show of privacy: masks of captures and of readers are the same, messages quote no restricted
values, and csv outputs hold no formulas.
"""

import csv
import io
import json
from pathlib import Path

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import SparkSession

import clew
from tests.engine.engine_workspaces import SHOP, Shop
from tests.trace.interpreted_shop import output, setting, step

MONTH = "2026-01"
CANARY = "QXPERS"


def shop_with(root: Path, *columns: tuple[str, str, str | None], key: str, rows: str) -> Shop:
    listed = [{"name": n, "type": t, **({"privacy": p} if p else {})} for n, t, p in columns]
    dataset = {"id": "people", "natural_key": [key], "main_table": {"name": "people", "columns": listed}}
    captures = {"personal_columns": "mask"}
    settings = {**SHOP["clew.yaml"], "environments": {"dev": {"retry": {"max_attempts": 1}, "captures": captures}}}
    files = {name: content for name, content in SHOP.items() if not name.startswith("datasets/")}
    head = ",".join(name for name, _, _ in columns)
    return Shop(root).write(
        {**files, "clew.yaml": settings, "datasets/people.yaml": dataset, "data/people.csv": f"{head}\n{rows}"}
    )


def seen_by(root: Path, role: str) -> Path:
    settings = json.loads((root / "clew.yaml").read_text(encoding="utf-8"))
    settings["environments"]["dev"]["local_role"] = role
    (root / "clew.yaml").write_text(json.dumps(settings), encoding="utf-8")
    return root


def test_a_masked_value_is_the_same_in_a_capture_and_in_a_trace(spark: SparkSession, tmp_path: Path) -> None:
    columns = [
        ("id", "integer", None),
        ("name", "string", "personal"),
        ("born", "date", "personal"),
        ("pay", "decimal(12,2)", "personal"),
        ("small", "decimal(18,9)", "personal"),
        ("age", "integer", "personal"),
        ("married", "boolean", "personal"),
        ("seen", "timestamp", "personal"),
        ("score", "double", "personal"),
        ("pin", "string", "secret"),
    ]
    rows = (
        "1,Ann Ångström,1970-02-03,1234.50,0.000000001,55,true,2026-01-02 03:04:05.600000,1.5,1111\n"
        "2,,,,,,,,,\n"
        "3,名前,2000-12-31,-0.10,0.000000000,0,false,1999-12-31 23:59:59,10000000000,2222\n"
    )
    shop = shop_with(tmp_path / "shop", *columns, key="id", rows=rows)
    shop.project(
        "p", {**step(10, "Copy", "update", assignments=setting(copy="name")), "assign": "here"}, dataset="people"
    )
    run = clew.open(shop.root).run("p", MONTH, captures=["here=full_view"])
    [capture] = run.captures
    captured = {row["id"]: row for row in capture.to_arrow().to_pylist()}
    found = clew.open(seen_by(shop.root, "operator")).get_run(run.id).trace(where="id > 0")
    assert found.rows
    for row in found.rows:
        kept = captured[row.state["id"]]
        for name in ("name", "born", "pay", "small", "age", "married", "seen", "score", "copy"):
            assert row.state[name] == kept[name], name
            assert row.state["id"] == 2 or len(str(row.state[name])) == 16
    assert all(row["pin"] in {None, "[masked]"} for row in captured.values())


def test_a_message_about_a_join_quotes_no_restricted_value(spark: SparkSession, tmp_path: Path) -> None:
    columns = [("id", "integer", None), ("name", "string", "personal"), ("pin", "string", "secret")]
    rows = f"1,{CANARY}-a,QXSEC-1\n2,{CANARY}-b,QXSEC-1\n3,{CANARY}-b,QXSEC-2\n"
    shop = shop_with(tmp_path / "shop", *columns, key="id", rows=rows)
    join = {"alias": "o", "dataset_id": "people", "on": "o.pin = people.pin"}
    shop.project("p", step(10, "Join", "update", joins=[join], assignments=setting(other="o.id")), dataset="people")
    run = clew.open(shop.root).run("p", MONTH)
    assert run.error is not None
    assert run.error.code == "JoinNotUnique"
    told = run.error.message + str([event.to_json() for event in run.events()])
    assert "…" in run.error.message
    assert CANARY not in told
    assert "QXSEC" not in told


def test_errors_of_libraries_quote_no_value_where_a_plan_reads_restricted_columns(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [("id", "integer", None), ("name", "string", "personal")]
    shop = shop_with(tmp_path / "shop", *columns, key="id", rows=f"1,{CANARY}-a\n")
    shop.project("p", step(10, "Copy", "update", assignments=setting(copy="id")), dataset="people")
    for error in (
        ValueError(f"could not convert '{CANARY}-a' with type str"),
        SparkRuntimeException(f"[SOME_ERROR] the row ({CANARY}-a, 1) is refused"),
    ):

        def broken(*_arguments: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr("clew.engine.executor.execute", broken)
        run = clew.open(shop.root).run("p", MONTH)
        assert run.error is not None
        assert (run.error.code, "…" in run.error.message) == ("EngineFailure", True)
        assert CANARY not in run.error.message + str([event.to_json() for event in run.events()])


FORMULAS = ["=1+1", "+49 30", "-2", "@sum", "\tx", "＝1", "plain", "a=b", ""]


@pytest.mark.parametrize("path", ["people.csv", "people"])
def test_a_csv_output_holds_no_formulas_if_it_must_not(spark: SparkSession, tmp_path: Path, path: str) -> None:
    columns = [("id", "integer", None), ("text", "string", None), ("amount", "integer", None)]
    rows = "".join(f'{n},"{text}",-{n}\n' for n, text in enumerate(FORMULAS))
    shop = shop_with(tmp_path / "shop", *columns, key="id", rows=rows)
    place = {"datasource_id": "reports", "path": path, "format": "csv"}
    for name, escape in (("safe", True), ("plain", False)):
        written = {**place, "path": f"{name}-{path}", "escape_formulas": escape}
        shop.project(name, {**output(10, "Out", path), "arguments": {"destination": written}}, dataset="people")
        assert clew.open(shop.root).run(name, MONTH).raise_if_failed().status == "COMPLETED"
    safe, plain = (_cells(shop.root / "reports" / f"{name}-{path}") for name in ("safe", "plain"))
    assert [plain[str(n)] for n in range(4)] == FORMULAS[:4]
    marked = [f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "＝"} else text for text in FORMULAS]
    assert [safe[str(n)].strip() for n in range(8)] == [text.strip() for text in marked[:8]]


def _cells(path: Path) -> dict[str, str]:
    files = [path] if path.is_file() else sorted(path.glob("part-*.csv"))
    rows = [row for file in files for row in csv.DictReader(io.StringIO(file.read_bytes().decode()))]
    assert all(row["amount"] in {"0", f"-{row['id']}"} for row in rows)  # numbers stay as they are
    return {row["id"]: row["text"] for row in rows}
