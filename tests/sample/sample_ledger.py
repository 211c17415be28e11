"""The data of the sample in DuckDB, and its close as the oracle computes it."""

from pathlib import Path

import duckdb

REPOSITORY = Path(__file__).parents[2]
SAMPLE = REPOSITORY / "src" / "clew" / "sample" / "workspace"
SAMPLE_DATA = SAMPLE / "data"
MONTHS = ("2026-01", "2026-02", "2026-03")

_ORACLE = Path(__file__).with_name("gl_close_oracle.sql").read_text(encoding="utf-8")
_TABLES = {
    "journal_lines": """journal_id VARCHAR, line_number BIGINT, posting_date DATE, account_code VARCHAR,
        cost_center VARCHAR, description VARCHAR, currency VARCHAR, amount_local DECIMAL(18, 2), category VARCHAR,
        entered_by VARCHAR, _period VARCHAR""",
    "accounts": "account_code VARCHAR, account_name VARCHAR, account_type VARCHAR",
    "cost_centers": "code VARCHAR, name VARCHAR, kind VARCHAR, region VARCHAR",
    "fx_rates": """from_currency VARCHAR, to_currency VARCHAR, rate_type VARCHAR, rate DECIMAL(18, 6),
        published_on DATE, remark VARCHAR, _period_from DATE, _period_to DATE""",
    "budgets": """account_code VARCHAR, cost_center VARCHAR, status VARCHAR, kind VARCHAR, amount_usd DECIMAL(18, 2),
        _period VARCHAR""",
}

Row = tuple[object, ...]


def open_ledger() -> duckdb.DuckDBPyConnection:
    """A database with the sample's tables, typed as its datasets are."""
    ledger = duckdb.connect()
    for name, columns in _TABLES.items():
        ledger.execute(f"CREATE TABLE {name} ({columns})")
        path = SAMPLE_DATA / ("journal/*.csv" if name == "journal_lines" else f"{name}.csv")
        ledger.execute(f"INSERT INTO {name} FROM read_csv('{path}', header = true, all_varchar = true)")
    ledger.execute(f"INSERT INTO journal_lines FROM '{SAMPLE_DATA}/journal/*/*.parquet'")
    return ledger


def ask_closed(ledger: duckdb.DuckDBPyConnection, query: str, month: str) -> list[Row]:
    """Ask something of `closed`, the closed ledger of a month."""
    parameters = {"period": month, "first_day": f"{month}-01"}
    return ledger.execute(f"WITH closed AS ({_ORACLE}) {query}", parameters).fetchall()
