import csv
import gzip
import io
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from clew.diagnostics import UserError
from clew.engine.loading.sources import Origin, positions_of
from clew.lang.types import STRING, parse_type
from clew.plan.datasets import DatasetColumn, DatasetUse
from tests.engine.loading_requests import Bench, path_source, use

TWO = use("id integer!; name string")


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
    first, last = (datetime.fromisoformat(f"2026-01-31T{at}") for at in ("10:20:30.500", "22:30"))
    assert bench.placed(pinned, "i", "d", "f", "b", "day", "at", "s") == [
        ("all.csv", 2, 1, Decimal("2.50"), 1000.0, True, date(2026, 1, 31), first, "x"),
        ("all.csv", 4, -7, Decimal("0.50"), -0.5, False, date(1, 1, 1), last, 'a "b", c'),
        ("all.csv", 5, None, None, None, None, None, None, None),
    ]
    assert (pinned.rows_read, pinned.rows_loaded, pinned.rows_outside_period) == (3, 3, 0)


def test_the_part_says_what_it_is(bench: Bench) -> None:
    bench.write("a.csv", "id,name\n1,x\n")
    pinned = bench.pin(TWO, path_source("a.csv"), first_file_ordinal=7)
    part = pinned.part
    assert (part.kind, part.name) == ("input", "things")
    assert part.columns == (("id", "integer"), ("name", "string"))
    assert [file.ordinal for file in part.files] == [7]
    assert pinned.sources == ("a.csv",)
    assert part.details is not None
    assert part.details["rule"] == "the rule"
    assert (bench.storage / part.files[0].path).is_file()


def test_columns_may_stand_in_any_order_beside_others(bench: Bench) -> None:
    bench.write("a.csv", "extra,NAME,id\n?,x,1\n")
    bench.write("b.csv", "id,name\n2,y\n")
    pinned = bench.pin(TWO, path_source("*.csv"))
    assert bench.placed(pinned, "id", "name") == [("a.csv", 2, 1, "x"), ("b.csv", 2, 2, "y")]


def test_options_say_how_the_file_is_written(bench: Bench) -> None:
    bench.write("a.txt", "1;'a;b';NA\n2;;x\n")
    of = use("id integer; name string; note string")
    options = {"header": "false", "delimiter": ";", "quote": "'", "null_value": "NA"}
    pinned = bench.pin(of, path_source("a.txt", options=options))
    assert bench.placed(pinned, "id", "name", "note") == [("a.txt", 1, 1, "a;b", None), ("a.txt", 2, 2, "", "x")]


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252", "cp437"])
def test_other_encodings_are_read(bench: Bench, encoding: str) -> None:
    text = "é" if encoding in {"ISO-8859-1", "cp437"} else "é €"
    bench.write("a.csv", f'id,name\n1,"{text}"\n'.encode(encoding))
    pinned = bench.pin(TWO, path_source("a.csv", options={"encoding": encoding}))
    assert bench.placed(pinned, "name") == [("a.csv", 2, text)]


def test_encodings_with_several_bytes_are_read(bench: Bench) -> None:
    for encoding, text in (("utf-16", "né"), ("shift_jis", "日本"), ("gb18030", "中"), ("utf-8-sig", "é")):
        bench.write("a.csv", f"id,name\n1,{text}\n".encode(encoding))
        pinned = bench.pin(TWO, path_source("a.csv", options={"encoding": encoding}))
        assert bench.placed(pinned, "name") == [("a.csv", 2, text)]
    bench.write("a.csv", b"id,name\n1,\x82\n")
    assert "shift_jis" in bench.problem(TWO, path_source("a.csv", options={"encoding": "shift_jis"}))
    assert "which is unknown" in bench.problem(
        TWO, path_source("a.csv", options={"encoding": "utf-88"}), code="SourceUnavailable"
    )


def test_a_byte_order_mark_is_no_part_of_the_first_name(bench: Bench) -> None:
    bench.write("a.csv", b"\xef\xbb\xbfid,name\r\n1,x\r\n")
    assert bench.placed(bench.pin(TWO, path_source("a.csv")), "id", "name") == [("a.csv", 2, 1, "x")]


def test_compressed_files_are_read(bench: Bench) -> None:
    bench.write("a.csv.gz", gzip.compress(b"\nid,name\n1,x\n\n2,y\n"))
    pinned = bench.pin(TWO, path_source("a.csv.gz"))
    assert bench.placed(pinned, "id") == [("a.csv.gz", 3, 1), ("a.csv.gz", 5, 2)]


def test_records_with_line_breaks_inside_keep_the_line_that_they_start_on(bench: Bench) -> None:
    bench.write("a.csv", 'id,name\n1,"one\ntwo"\n\n2,y\n3,"\r\n\r\n"\n4,z\n')
    pinned = bench.pin(TWO, path_source("a.csv", options={"multiline": "true"}))
    assert bench.placed(pinned, "id", "name") == [
        ("a.csv", 2, 1, "one\ntwo"),
        ("a.csv", 5, 2, "y"),
        ("a.csv", 6, 3, "\r\n\r\n"),
        ("a.csv", 9, 4, "z"),
    ]
    assert pinned.part.details is not None
    assert pinned.part.details["places"] == "line"


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ISO-8859-1", "cp1252", "windows-1252", "cp437", "utf-16"])
def test_records_with_line_breaks_inside_are_read_in_other_encodings(bench: Bench, encoding: str) -> None:
    bench.write("a.csv", 'id,"na\nme"\n1,"é\nü"\n2,ß\n'.replace("na\nme", "name").encode(encoding))
    pinned = bench.pin(TWO, path_source("a.csv", options={"multiline": "true", "encoding": encoding}))
    assert bench.placed(pinned, "id", "name") == [("a.csv", 2, 1, "é\nü"), ("a.csv", 4, 2, "ß")]


def test_records_in_an_encoding_that_spark_does_not_read_are_read(bench: Bench) -> None:
    bench.write("a.csv", 'id,name\n1,"猫\n犬"\n2,犬\n'.encode("shift_jis"))
    source = path_source("a.csv", options={"multiline": "true", "encoding": "shift_jis"})
    assert bench.placed(bench.pin(TWO, source), "name") == [("a.csv", 2, "猫\n犬"), ("a.csv", 4, "犬")]
    bench.write("b.csv", b"id,name\n1,\xff\n")
    assert "not UTF-8" in bench.problem(TWO, path_source("b.csv", options={"multiline": "true"}))


def test_records_whose_lines_cannot_be_told_are_counted(bench: Bench) -> None:
    bench.write("a.csv", 'id||name\n1||"c\nd"\n2||e\n')
    pinned = bench.pin(TWO, path_source("a.csv", options={"multiline": "true", "delimiter": "||"}))
    assert bench.placed(pinned, "id", "name") == [("a.csv", 1, 1, "c\nd"), ("a.csv", 2, 2, "e")]
    assert pinned.part.details is not None
    assert pinned.part.details["places"] == "record"


Placed = tuple[str, int, int, str | None, str | None]
_FIELDS = st.text(st.sampled_from('ab",;\n\r# é'), max_size=6)
_RECORDS = st.lists(st.tuples(st.lists(_FIELDS, min_size=2, max_size=2), st.integers(0, 2), st.booleans()), max_size=8)


def _written(records: list[tuple[list[str], int, bool]], end: str) -> tuple[str, list[Placed]]:
    """A file with blank lines and comments between its records, and what is where in it."""
    text, expected = f"id,a,b{end}", list[Placed]()
    for number, (fields, blank, has_comment) in enumerate(records, 1):
        text += end * blank + (f'# not a "record{end}' if has_comment else "")
        line = len(re.findall(r"\r\n|\r|\n", text)) + 1
        quoted = [field.replace('"', '""') for field in fields]
        text += f'{number},"{quoted[0]}","{quoted[1]}"{end}'
        expected.append(("a.csv", line, number, fields[0] or None, fields[1] or None))
    return text, expected


def _with_plain_ends(rows: Sequence[tuple[object, ...]]) -> set[tuple[object, ...]]:
    """Spark writes a line break inside a field as \\n where it is the one that lines of the file end with."""
    return {
        tuple(re.sub(r"\r\n|\r", "\n", value) if isinstance(value, str) else value for value in row) for row in rows
    }


def test_lines_of_generated_records_are_those_that_they_were_written_to(bench: Bench) -> None:
    of = use("id integer!; a string; b string")
    files = list[tuple[str, list[Placed]]]()

    @settings(max_examples=12, phases=[Phase.generate])
    @given(_RECORDS, st.sampled_from(["\n", "\r\n"]), st.booleans())
    def collect(records: list[tuple[list[str], int, bool]], end: str, has_mark: bool) -> None:
        text, expected = _written(records, end)
        files.append(("\ufeff" * has_mark + text, expected))

    collect()
    assert sum(len(expected) for _, expected in files) > 20
    for text, expected in files:
        bench.write("a.csv", text)
        pinned = bench.pin(of, path_source("a.csv", options={"multiline": "true", "comment": "#"}))
        assert _with_plain_ends(bench.placed(pinned, "id", "a", "b")) == _with_plain_ends(expected), text


def test_a_word_where_a_number_should_be_may_stand_for_no_value(bench: Bench) -> None:
    bench.write("a.csv", "id,name\n1,x\nn/a,y\n")
    with pytest.raises(UserError) as caught:
        bench.pin(TWO, path_source("a.csv"))
    assert caught.value.diagnostic.hint == (
        'correct the value; if "n/a" stands for no value, set the option `null_value: "n/a"` of the rule; '
        "`bad_rows: quarantine` in the rule keeps such rows apart"
    )
    bench.write("b.csv", "number, other \n1,x\n")
    with pytest.raises(UserError) as caught:
        bench.pin(TWO, path_source("b.csv"))
    assert caught.value.diagnostic.hint == 'its columns are number, " other "'


def test_names_with_blanks_percent_signs_and_wildcards_are_files(bench: Bench) -> None:
    for name in ("a b.csv", "50%20.csv", "x[1]{2}.csv", "é+&.csv"):
        bench.write(name, "id,name\n1,x\n")
        assert bench.placed(bench.pin(TWO, path_source(name)), "id") == [(name, 2, 1)]
    pinned = bench.pin(TWO, path_source("*.csv"))
    assert {row[0] for row in bench.placed(pinned)} == {"a b.csv", "50%20.csv", "x[1]{2}.csv", "é+&.csv"}


def test_a_folder_stands_for_the_data_files_in_it(bench: Bench) -> None:
    bench.write("day/1.csv", "id,name\n1,x\n")
    bench.write("day/deep/2.csv", "id,name\n2,x\n")
    bench.write("day/_SUCCESS", "")
    bench.write("day/.hidden.csv", "broken")
    assert bench.placed(bench.pin(TWO, path_source("day")), "id") == [("day/1.csv", 2, 1), ("day/deep/2.csv", 2, 2)]


def test_empty_files_have_no_rows(bench: Bench) -> None:
    bench.write("header.csv", "id,name\n")
    bench.write("nothing.csv", "")
    pinned = bench.pin(TWO, path_source("header.csv"))
    assert (pinned.rows_read, pinned.rows_loaded, pinned.part.files) == (0, 0, ())
    without = bench.pin(TWO, path_source("nothing.csv", options={"header": "false"}))
    assert (without.rows_read, without.part.files) == (0, ())
    assert "has no header" in bench.problem(TWO, path_source("nothing.csv"))


def _numbered(bench: Bench, sizes: dict[str, int], width: int) -> None:
    """Files in which every row knows its own line; each seventh line is blank."""
    for name, lines in sizes.items():
        text = io.StringIO()
        text.write("id,name\n")
        for line in range(2, lines + 1):
            text.write("\n" if line % 7 == 0 else f"{line},{name}{'.' * width}\n")
        bench.write(name, text.getvalue())


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param({"one.csv": 150_000}, id="one large file, in several blocks"),
        pytest.param({f"{n:02}.csv": 10 + 40 * n for n in range(40)}, id="many small files"),
        pytest.param({"big.csv": 120_000, "small.csv": 5, "tiny.csv": 2, "x.csv": 30_000}, id="large and small ones"),
        pytest.param({f"{n}.csv": 100 for n in range(3)}, id="a few small files"),
    ],
)
def test_every_row_has_the_number_of_its_line(bench: Bench, sizes: dict[str, int]) -> None:
    _numbered(bench, sizes, width=70)
    pinned = bench.pin(TWO, path_source("*.csv"))
    rows = bench.spark.read.parquet(*(str(bench.storage / file.path) for file in pinned.part.files))
    wrong = rows.where("__source_line <> id OR NOT startswith(name, __source_file)").count()
    assert wrong == 0
    assert pinned.rows_loaded == sum(lines - 1 - lines // 7 for lines in sizes.values())
    if max(sizes.values()) > 100_000:
        assert len(pinned.part.files) > 1
    assert [file.ordinal for file in pinned.part.files] == list(range(len(pinned.part.files)))


_CELL = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=6)


@settings(max_examples=2, phases=[Phase.generate])
@given(rows=st.lists(st.tuples(_CELL, _CELL, _CELL), min_size=200, max_size=400))
def test_texts_arrive_as_the_csv_module_reads_them(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    bench = Bench(spark, tmp_path_factory.mktemp("csv"))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("a", "b", "c"), *rows])
    path = bench.write("a.csv", text.getvalue())
    with path.open(encoding="utf-8", newline="") as stream:
        expected = [
            (number, *(cell or None for cell in cells))
            for number, cells in enumerate(csv.reader(stream), start=1)
            if number > 1
        ]
    pinned = bench.pin(use("a string; b string; c string"), path_source("a.csv"))
    assert sorted(bench.rows(pinned, "__source_line", "a", "b", "c")) == expected


def test_a_text_that_is_not_of_the_type_is_refused_with_its_place(bench: Bench) -> None:
    bench.write("a.csv", "id,amount\n1,\n2,12.505\n3,12.5000\n4,x\n")
    message = bench.problem(use("id integer; amount decimal(18,2)"), path_source("a.csv"))
    assert message == (
        'column "amount" of "things": "12.505" is not a decimal(18,2), in a.csv, line 3; 1 more row is wrong'
    )


def test_a_missing_column_is_named_with_the_file_and_near_names(bench: Bench) -> None:
    bench.write("a.csv", "id,name\n1,x\n")
    bench.write("b.csv", "id,nmae\n1,x\n")
    message = bench.problem(TWO, path_source("*.csv"))
    assert 'b.csv has no column "name"' in message


def test_all_missing_columns_are_named_at_once(bench: Bench) -> None:
    bench.write("a.csv", "other\n1\n")
    message = bench.problem(TWO, path_source("a.csv"))
    assert message == 'a.csv has no columns "id", "name", which the dataset "things" has'


@pytest.mark.parametrize(("mark", "written"), [(";", ";"), ("\t", "\\t"), ("|", "|")])
def test_a_header_with_other_delimiters_is_shown_with_the_option_for_them(mark: str, written: str) -> None:
    with pytest.raises(UserError) as told:
        positions_of(TWO, [f"id{mark}name"], Origin("a.csv", None))
    assert told.value.diagnostic.hint == (
        f'its header is "id{mark}name": set the option `delimiter` of the rule to "{written}"'
    )


def test_a_column_that_stands_twice_is_refused(bench: Bench) -> None:
    bench.write("a.csv", "id,name,name\n1,x,y\n")
    assert 'has the column "name" twice' in bench.problem(TWO, path_source("a.csv"))


def test_a_missing_value_where_there_must_be_one_is_refused(bench: Bench) -> None:
    bench.write("a.csv", "id,name\n1,x\n,y\n,z\n")
    message = bench.problem(TWO, path_source("a.csv"))
    assert 'column "id" of "things" must not be empty' in message
    assert "a.csv, line 3" in message


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2", "does not have 2 fields"),
        ('2,"y', "a quote is not closed"),
        ('2,"y"z', "a quote is not closed"),
    ],
)
def test_a_broken_line_is_refused_with_its_place(bench: Bench, line: str, reason: str) -> None:
    bench.write("a.csv", f"id,name\n1,x\n{line}\n3,z\n")
    message = bench.problem(TWO, path_source("a.csv"))
    assert "a.csv, line 3" in message
    assert reason in message


def test_bytes_that_are_no_utf_8_are_refused(bench: Bench) -> None:
    bench.write("a.csv", b"id,name\n1,x\n2,\xff\n")
    message = bench.problem(TWO, path_source("a.csv"))
    assert "a.csv, line 3" in message
    assert "not UTF-8" in message
    with pytest.raises(UserError) as caught:
        bench.pin(TWO, path_source("a.csv"))
    assert "`encoding`" in (caught.value.diagnostic.hint or "")


def test_a_field_with_thousands_of_quotes_is_read(bench: Bench) -> None:
    bench.write("a.csv", 'id,name\n1,"' + '""x' * 20_000 + '"\n')
    assert bench.rows(bench.pin(TWO, path_source("a.csv")), "name") == [('"x' * 20_000,)]


def test_private_values_are_not_shown(bench: Bench) -> None:
    of = DatasetUse(
        "things", "things", "things", "none", (DatasetColumn("pin", parse_type("integer"), privacy="secret"),)
    )
    bench.write("a.csv", "pin\nhunter2\n")
    message = bench.problem(of, path_source("a.csv"))
    assert "hunter2" not in message
    assert "a.csv, line 2" in message


def test_two_rows_with_the_same_natural_key_are_named(bench: Bench) -> None:
    of = use("id integer!; name string", key=["id", "name"])
    bench.write("a.csv", "id,name\n1,x\n2,y\n1,y\n2,y\n")
    message = bench.problem(of, path_source("a.csv"))
    assert 'natural key id "2", name "y"' in message
    assert "a.csv, line 3, and a.csv, line 5" in message


def test_a_path_without_files_names_path_and_rule(bench: Bench) -> None:
    assert bench.data.is_dir()
    message = bench.problem(TWO, path_source("no/such.csv"), code="SourceUnavailable")
    assert "no/such.csv" in message
    assert '"the rule"' in message
    assert "*.csv" in bench.problem(TWO, path_source("*.csv"), code="SourceUnavailable")


def test_a_root_that_does_not_exist_is_named(bench: Bench) -> None:
    bench.sources_root = "nowhere"
    assert "nowhere" in bench.problem(TWO, path_source("a.csv"), code="SourceUnavailable")


@pytest.mark.parametrize("location", ["link.csv", "out/secret.csv", "out", "../secret.csv", "*.csv"])
def test_nothing_outside_the_root_is_read(bench: Bench, location: str) -> None:
    secret = bench.folder / "elsewhere" / "secret.csv"
    secret.parent.mkdir()
    secret.write_text("id,name\n1,x\n")
    (bench.folder / "secret.csv").write_text("id,name\n1,x\n")
    (bench.data / "link.csv").symlink_to(secret)
    (bench.data / "out").symlink_to(secret.parent)
    assert "leads out of the root" in bench.problem(TWO, path_source(location), code="SourceUnavailable")


def test_an_absolute_path_is_not_a_path_below_the_root(bench: Bench) -> None:
    path = bench.write("a.csv", "id,name\n1,x\n")
    assert "no file matches" in bench.problem(TWO, path_source(str(path)), code="SourceUnavailable")


def test_a_refused_load_can_be_repeated_after_the_fix(bench: Bench) -> None:
    bench.write("a.csv", "id,name\nx,y\n")
    bench.problem(TWO, path_source("a.csv"))
    bench.write("a.csv", "id,name\n1,y\n")
    assert bench.pin(TWO, path_source("a.csv")).rows_loaded == 1


def test_names_of_columns_may_have_any_characters(bench: Bench) -> None:
    names = ["a b", "x.y", "it`s", "größe", "'q'", "f0", "__x"]
    of = use([DatasetColumn(name, STRING) for name in names])
    bench.write("a.csv", ",".join(names) + "\n" + ",".join("1234567") + "\n")
    pinned = bench.pin(of, path_source("a.csv"))
    assert bench.rows(pinned)[0][: len(names)] == tuple("1234567")
