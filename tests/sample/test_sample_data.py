"""The numbers of the sample workspace, checked with SQL and without Clew."""

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.sample.sample_ledger import MONTHS, REPOSITORY, SAMPLE_DATA, ask_closed, open_ledger


@pytest.fixture(scope="module")
def ledger() -> Iterator[duckdb.DuckDBPyConnection]:
    with open_ledger() as connection:
        yield connection


def test_the_generator_gives_what_is_shipped_every_time(tmp_path: Path) -> None:
    script = REPOSITORY / "tools" / "make_sample_data.py"
    for folder in ("first", "second"):
        subprocess.run([sys.executable, script, tmp_path / folder], check=True)
    made = sorted(path.relative_to(tmp_path / "first") for path in (tmp_path / "first").rglob("*") if path.is_file())
    assert [path.as_posix() for path in made] == [
        "budgets.csv",
        "journal/2026-03/part-00001.parquet",
        "journal/journal_2026-01.csv",
        "journal/journal_2026-02.csv",
    ]
    for path in made:
        first = tmp_path / "first" / path
        assert first.read_bytes() == (tmp_path / "second" / path).read_bytes()
        if path.suffix == ".parquet":  # its bytes also name the version of the library that wrote them
            assert pq.read_table(first).equals(pq.read_table(SAMPLE_DATA / path))
        else:
            assert first.read_bytes() == (SAMPLE_DATA / path).read_bytes()


def test_the_journal_has_thousands_of_lines_over_three_months_and_four_currencies(
    ledger: duckdb.DuckDBPyConnection,
) -> None:
    counts = dict(ledger.execute("SELECT _period, count(*) FROM journal_lines GROUP BY ALL").fetchall())
    assert counts == {"2026-01": 1455, "2026-02": 1368, "2026-03": 1479}
    currencies = ledger.execute("SELECT DISTINCT currency FROM journal_lines ORDER BY ALL").fetchall()
    assert currencies == [("EUR",), ("GBP",), ("JPY",), ("USD",)]


def test_every_journal_entry_balances_in_one_currency_on_one_day(ledger: duckdb.DuckDBPyConnection) -> None:
    broken = ledger.execute("""
        SELECT journal_id FROM journal_lines GROUP BY journal_id
        HAVING sum(amount_local) <> 0 OR count(DISTINCT (currency, posting_date, _period)) <> 1 OR count(*) < 2
    """).fetchall()
    assert broken == []


def test_a_line_is_told_apart_by_journal_and_line_number(ledger: duckdb.DuckDBPyConnection) -> None:
    twice = ledger.execute("SELECT journal_id FROM journal_lines GROUP BY journal_id, line_number HAVING count(*) > 1")
    assert twice.fetchall() == []


def test_lines_are_posted_on_weekdays_of_their_period(ledger: duckdb.DuckDBPyConnection) -> None:
    elsewhere = ledger.execute("""
        SELECT journal_id FROM journal_lines
        WHERE strftime(posting_date, '%Y-%m') <> _period OR isodow(posting_date) > 5
    """)
    assert elsewhere.fetchall() == []


@pytest.mark.parametrize("table", ["journal_lines", "budgets"])
def test_every_account_and_cost_centre_is_known(ledger: duckdb.DuckDBPyConnection, table: str) -> None:
    unknown = ledger.execute(f"""
        SELECT account_code, cost_center FROM {table}
        WHERE account_code NOT IN (SELECT account_code FROM accounts)
           OR (cost_center IS NOT NULL AND cost_center NOT IN (SELECT code FROM cost_centers))
    """)
    assert unknown.fetchall() == []


@pytest.mark.parametrize("table", ["journal_lines", "budgets"])
def test_profit_and_loss_has_a_cost_centre_and_the_balance_sheet_has_none(
    ledger: duckdb.DuckDBPyConnection, table: str
) -> None:
    wrong = ledger.execute(f"""
        SELECT * FROM {table} JOIN accounts USING (account_code)
        WHERE (account_type IN ('revenue', 'expense')) <> (cost_center IS NOT NULL)
    """)
    assert wrong.fetchall() == []


@pytest.mark.parametrize("month", MONTHS)
def test_one_closing_rate_counts_per_currency_and_month(ledger: duckdb.DuckDBPyConnection, month: str) -> None:
    rates = ledger.execute(
        """
        SELECT from_currency, to_currency, rate_type, count(*) FROM fx_rates
        WHERE _period_from <= $day::DATE AND (_period_to IS NULL OR $day::DATE < _period_to)
        GROUP BY ALL ORDER BY ALL
        """,
        {"day": f"{month}-01"},
    ).fetchall()
    assert rates == [
        ("EUR", "USD", "average", 1),
        ("EUR", "USD", "closing", 1),
        ("GBP", "USD", "average", 1),
        ("GBP", "USD", "closing", 1),
        ("JPY", "USD", "average", 1),
        ("JPY", "USD", "closing", 1),
        ("USD", "EUR", "closing", 1),
    ]


def test_the_closing_rate_of_the_euro_was_restated_from_january_on(ledger: duckdb.DuckDBPyConnection) -> None:
    rates = ledger.execute("""
        SELECT rate, _period_from::VARCHAR, _period_to::VARCHAR FROM fx_rates
        WHERE from_currency = 'EUR' AND rate_type = 'closing' AND _period_from < '2026-02-01' ORDER BY _period_from
    """)
    assert rates.fetchall() == [
        (Decimal("1.085000"), "2025-12-01", "2026-01-01"),
        (Decimal("1.092000"), "2026-01-01", "2026-02-01"),
    ]


@pytest.mark.parametrize(("month", "lines"), [("2026-01", 17), ("2026-02", 9), ("2026-03", 12)])
def test_test_entries_are_whole_entries(ledger: duckdb.DuckDBPyConnection, month: str, lines: int) -> None:
    dropped = ask_closed(ledger, "SELECT count(*), sum(amount_local) FROM closed WHERE row_kind = 'test entry'", month)
    assert dropped == [(lines, Decimal("0.00"))]


@pytest.mark.parametrize("month", MONTHS)
def test_the_closed_ledger_is_zero_but_for_rounding(ledger: duckdb.DuckDBPyConnection, month: str) -> None:
    """Each line is rounded to a cent by itself, so an entry that balances in EUR may be a cent off in USD."""
    totals = ask_closed(ledger, "SELECT sum(total_usd), sum(line_count) FROM closed", month)
    lines = ask_closed(ledger, "SELECT sum(amount_usd), count(*) FROM closed WHERE row_kind = 'line'", month)
    assert totals == lines
    [(off_balance, _)] = lines
    assert isinstance(off_balance, Decimal)
    assert abs(off_balance) < 1


def test_the_totals_of_january(ledger: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT account_type, total_usd, line_count FROM closed WHERE row_kind = 'total' ORDER BY account_type"
    assert ask_closed(ledger, query, "2026-01") == [
        ("asset", Decimal("757673.96"), 437),
        ("expense", Decimal("737127.41"), 484),
        ("liability", Decimal("-694583.30"), 366),
        ("revenue", Decimal("-800217.99"), 151),
    ]


def test_the_entries_that_the_documentation_follows(ledger: duckdb.DuckDBPyConnection) -> None:
    query = """
        SELECT row_kind, journal_id, line_number, account_code, category, amount_local, amount_usd FROM closed
        WHERE (journal_id, line_number) IN (('JE-00017', 1), ('JE-00099', 1), ('JE-00231', 2)) ORDER BY journal_id
    """
    assert ask_closed(ledger, query, "2026-01") == [
        ("line", "JE-00017", 1, "5250", "operating", Decimal("56043.96"), Decimal("61200.00")),
        ("test entry", "JE-00099", 1, "5240", "operating", Decimal("2500.00"), Decimal("2730.00")),
        ("line", "JE-00231", 2, "5290", "projects", Decimal("1200.00"), Decimal("1310.40")),
    ]
