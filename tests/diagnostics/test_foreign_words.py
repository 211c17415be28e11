"""What other programs say is told without the values that they quote."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.captures.captured_rows import questions
from clew.diagnostics import EngineBug
from clew.diagnostics.foreign_words import without_quoted

CANARY = "QXPERS"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            f"[CAST_INVALID_INPUT] The value '{CANARY} x' of the type \"STRING\" cannot be cast",
            "[CAST_INVALID_INPUT] The value '…' of the type \"…\" cannot be cast",
        ),
        (
            f'duplicate key value violates unique constraint "pk" Detail: Key (name, id)=({CANARY}, 7) already exists.',
            'duplicate key value violates unique constraint "…" Detail: Key (…)=(…) already exists.',
        ),
        (
            f"Batch entry 0 INSERT INTO people VALUES (('{CANARY}'::varchar), 7340021) was aborted",
            "Batch entry 0 INSERT INTO people VALUES (…) was aborted",
        ),
        (f"row with values: name : {CANARY}", "row with values: …"),
        (f"cut short: '{CANARY}", "cut short: '…'"),
        ("Type INT64 with value 7340021.50 is out of range", "Type INT64 with value … is out of range"),
        ("born 1970-02-03 is too early", "born … is too early"),
        ("file:/data/2026/part-00000.parquet does not exist", "file:/data/2026/part-00000.parquet does not exist"),
        ("ORA-01722: invalid number", "ORA-01722: invalid number"),
        ("Connection refused: localhost:5432", "Connection refused: localhost:5432"),
    ],
)
def test_what_is_quoted_is_left_out_and_the_rest_stays(said: str, told: str) -> None:
    assert without_quoted(said) == told


@given(st.text(st.characters(exclude_characters="'\"`«»()[]{}", exclude_categories=["Cs", "Cc", "Zl", "Zp"])))
def test_no_text_in_quotes_is_told(text: str) -> None:
    for begin, end in ("''", '""', "()", "{}"):
        assert without_quoted(f"bad {begin}{CANARY}{text}{end} here") == f"bad {begin}…{end} here"


def test_errors_of_the_database_and_of_arrow_are_told_without_values() -> None:
    with questions() as asked, pytest.raises(EngineBug) as error:
        asked.ask(f"SELECT '{CANARY}'::INT")
    assert "Conversion Error" in error.value.diagnostic.message
    assert CANARY not in error.value.diagnostic.message
    with duckdb.connect() as connection:
        for act in (
            lambda: connection.execute(f"SELECT strptime('{CANARY}', '%Y')").fetchall(),
            lambda: pa.array([CANARY]).cast(pa.int64()),
            lambda: pa.array([CANARY], pa.int64()),
        ):
            with pytest.raises((duckdb.Error, pa.ArrowException)) as raised:
                act()
            assert CANARY in str(raised.value)
            assert CANARY not in without_quoted(str(raised.value))
