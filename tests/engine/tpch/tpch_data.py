"""TPC-H: its data in Parquet files, its datasets, and comparing rows with those of DuckDB."""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

SCALE = "0.01"
TABLES = {
    "lineitem": "l_orderkey integer, l_linenumber integer, l_quantity decimal(15;2), l_extendedprice decimal(15;2), "
    "l_discount decimal(15;2), l_tax decimal(15;2), l_returnflag string, l_linestatus string, l_shipdate date",
    "orders": "o_orderkey integer, o_custkey integer, o_orderstatus string, o_totalprice decimal(15;2), "
    "o_orderdate date, o_orderpriority string",
    "customer": "c_custkey integer, c_nationkey integer, c_acctbal decimal(15;2), c_mktsegment string",
    "nation": "n_nationkey integer, n_name string, n_regionkey integer",
    "region": "r_regionkey integer, r_name string",
}
KEYS = {
    "lineitem": ["l_orderkey", "l_linenumber"],
    "orders": ["o_orderkey"],
    "customer": ["c_custkey"],
    "nation": [],
    "region": ["r_regionkey"],
}


def dataset(name: str) -> dict[str, Any]:
    pairs = (text.split() for text in TABLES[name].split(", "))
    columns = [{"name": column, "type": type_.replace(";", ",")} for column, type_ in pairs]
    return {"id": name, "natural_key": KEYS[name], "main_table": {"name": name, "columns": columns}}


def step(seq: int, type_: str, selector: str | None = None, **arguments: Any) -> dict[str, Any]:
    chosen = {} if selector is None else {"selector": selector}
    return {"seq": seq, "name": f"{type_} {seq}", "type": type_, **chosen, "arguments": arguments}


def pairs(**columns: str) -> list[dict[str, str]]:
    return [{"column": column, "expression": text} for column, text in columns.items()]


def generated(root: Path, scale: str = SCALE, names: Iterable[str] = TABLES) -> Path:
    """The folder with the data, a file for each table."""
    generator = Path(sys.executable).with_name("tpchgen-cli")
    tables = f"--tables={','.join(names)}"
    folder = root / "data"
    subprocess.run([generator, "parquet", "-s", scale, tables, "--output-dir", folder], check=True, capture_output=True)
    return folder


def same(found: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]]) -> None:
    assert sorted(map(plain, found)) == sorted(map(plain, expected))
    assert found


def plain(row: tuple[Any, ...]) -> str:
    return repr([value.normalize() + 0 if isinstance(value, Decimal) else value for value in row])
