from decimal import Decimal
from datetime import date, datetime
from pathlib import Path

import pytest
from loading_requests import Bench, day, path_source, use
from pyspark.sql import SparkSession


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def test_rows_keep_their_lines_and_get_the_types_of_the_dataset(bench: Bench) -> None:
    bench.write(
        "all.csv",
        "i,d,f,b,day,at,s\n"
        "1,2.50,1e3,true,2026-01-31,2026-01-31T10:20:30.5,x\n"
        "\n"
        ' -7 ,+.5,-0.5,FALSE,0001-01-01,2026-01-31 23:30:00+01:00,"a ""b"", c"\n'
        ",,,,,,\n",
    )
    of = use("i integer; d decimal(10,2); f double; b boolean; day date; at timestamp; s string")
    pinned = bench.pin(of, path_source("all.csv"))
    assert bench.placed(pinned, "i", "d", "f", "b", "day", "at", "s") == [
        (
            "all.csv",
            2,
            1,
            Decimal("2.50"),
            1000.0,
            True,
            date(2026, 1, 31),
            datetime(2026, 1, 31, 10, 20, 30, 500000),
            "x",
        ),
        ("all.csv", 4, -7, Decimal("0.50"), -0.5, False, date(1, 1, 1), datetime(2026, 1, 31, 22, 30), 'a "b", c'),
        ("all.csv", 5, None, None, None, None, None, None, None),
    ]
    assert (pinned.rows_read, pinned.rows_loaded, pinned.rows_outside_period) == (3, 3, 0)
