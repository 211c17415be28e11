from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.loading_requests import Bench, path_source, use

OF = use("id integer!; amount decimal(38,18); name string; ok boolean")


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def test_values_keep_all_their_digits_and_their_lines(bench: Bench) -> None:
    bench.write(
        "a.jsonl",
        '{"id": 1, "amount": 1.10, "name": "x: 5, {\\"y\\": 2}", "ok": true}\n'
        "\n"
        '  {"ok":false,"other":[1,{"z":2.50}],"amount":12345678901234567890.123456789012345678,"id":-2}\r\n'
        '{"id":"3","amount":"0.5","name":7.10,"ok":null}\n'
        '{"id":4,"amount":-0.000000000000000001,"name":"back\\\\slash 1\\n2"}\n',
    )
    pinned = bench.pin(OF, path_source("a.jsonl", "jsonl"))
    assert bench.placed(pinned, "id", "amount", "name", "ok") == [
        ("a.jsonl", 1, 1, Decimal("1.10"), 'x: 5, {"y": 2}', True),
        ("a.jsonl", 3, -2, Decimal("12345678901234567890.123456789012345678"), None, False),
        ("a.jsonl", 4, 3, Decimal("0.5"), "7.10", None),
        ("a.jsonl", 5, 4, Decimal("-0.000000000000000001"), "back\\slash 1\n2", None),
    ]


@pytest.mark.parametrize("line", ['{"id": 1', '{"id": 1} {"id": 2}', "[1, 2]"])
def test_a_line_that_is_not_one_object_is_refused_with_its_place(bench: Bench, line: str) -> None:
    bench.write("a.jsonl", '{"id": 1}\n' + line + "\n")
    message = bench.problem(OF, path_source("a.jsonl", "jsonl"))
    assert "a.jsonl, line 2" in message
    assert "not one JSON object" in message


def test_a_value_of_another_type_is_refused(bench: Bench) -> None:
    bench.write("a.jsonl", '{"id": 1.5}\n')
    assert '"1.5" is not an integer, in a.jsonl, line 1' in bench.problem(OF, path_source("a.jsonl", "jsonl"))


def test_a_key_that_is_not_there_is_a_missing_value(bench: Bench) -> None:
    bench.write("a.jsonl", '{"ID": 1}\n')
    assert 'column "id" of "things" must not be empty' in bench.problem(OF, path_source("a.jsonl", "jsonl"))


def test_an_empty_file_has_no_rows(bench: Bench) -> None:
    bench.write("a.jsonl", "\n")
    pinned = bench.pin(OF, path_source("a.jsonl", "jsonl"))
    assert (pinned.rows_read, pinned.part.files) == (0, ())
