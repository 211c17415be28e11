"""`clew trace` and `clew explain` asked for what is not there, too early, too vaguely, or of files that are damaged."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clew.cli.main import run as command
from clew.storage.row_identity import RowIds
from tests.trace.interpreted_shop import Ran, interpreted_shop, ran_shop


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> tuple[str, str]:
        """Code and message of an error as JSON."""
        return self.json["error"]["code"], self.json["error"]["message"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran_shop(tmp_path_factory.mktemp("shop")) as ran:
        yield ran


@pytest.fixture
def ask(ran: Ran, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    def call(*arguments: str, cwd: Path = ran.shop.root) -> Answer:
        monkeypatch.chdir(cwd)
        code = command(list(arguments))
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


COMMANDS = (
    ("trace",),
    ("trace", "--step", "10"),
    ("explain", "--where", "id = 1", "usd"),
    ("explain", "--why-not", "id = 1"),
)


_HEAVY = {"pandas", "numpy", "pyspark", "fastapi", "sqlalchemy", "psycopg", "rich"}
_MOST_MODULES = {"check": 370, "runs": 375, "show": 490, "trace": 580, "explain": 620}
"""How many modules a command may load, Python's own among them: a tenth more than it does."""


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("runs",),
        ("show", "RUN"),
        ("trace", "RUN", "--where", "id = 103"),
        ("explain", "RUN", "--where", "id = 103", "usd"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_that_reads_loads_little(ran: Ran, arguments: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom clew.cli.main import main\ntry:\n    main(sys.argv[1:])\n"
        "except SystemExit as ended:\n    print(ended.code, *sys.modules)"
    )
    named = [ran.january if word == "RUN" else word for word in arguments]
    command = [sys.executable, "-c", code, *named]
    done = subprocess.run(command, cwd=ran.shop.root, capture_output=True, text=True, check=True)
    status, *modules = done.stdout.splitlines()[-1].split()
    assert (status, done.stderr) == ("0", "")
    assert _HEAVY & {module.partition(".")[0] for module in modules} == set()
    assert len(modules) <= _MOST_MODULES[arguments[0]]
    assert "pyarrow.compute" not in modules
    if arguments[0] == "runs":
        assert {"clew.plan.plan", "clew.lang.functions", "clew.engine", "clew.trace.run_trace"}.isdisjoint(modules)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_run_that_does_not_exist_is_not_found(ask: Callable[..., Answer], arguments: tuple[str, ...]) -> None:
    name, *others = arguments
    answer = ask(name, "ffffffff", *others, "--json")
    assert answer.code == 3
    assert answer.error[0] == "RunNotFound"
    assert "ffffffff" in answer.error[1]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_run_that_goes_on_is_refused_until_it_has_ended(
    ran: Ran, ask: Callable[..., Answer], arguments: tuple[str, ...]
) -> None:
    waiting = ran.shop.submit("close", "2026-04")
    name, *others = arguments
    answer = ask(name, waiting, *others)
    assert answer.code == 1
    assert "error RunNotFinished" in answer.err
    assert "PENDING" in answer.err


def test_a_run_that_failed_tells_what_it_did_before(ran: Ran, ask: Callable[..., Answer]) -> None:
    steps = {step["operation_seq"]: step for step in ask("trace", ran.failed, "--json").json["steps"]}
    assert (steps[10]["rows_updated"], steps[20]["rows_deleted"]) == (0, 0)
    loaded = ask("trace", ran.failed, "--at", "0", "--json")
    assert len(loaded.json["rows"]) == 7
    assert {seq: step["outcome"] for seq, step in steps.items()} == {10: "done", 20: "not reached", 30: "not reached"}
    assert ask("trace", ran.failed, "--where", "TRUE", "--json").json["at"] == 10
    assert "--at 10" in ask("trace", ran.failed, "--where", "id = 304").out
    beyond = ask("trace", ran.failed, "--at", "20")
    assert beyond.code == 3
    assert "step 20 was not reached; the run reached the steps 10" in beyond.err
    assert "the run ended before step 20 was done" in beyond.err


def test_no_row_is_in_an_output_that_a_failed_run_never_wrote(ran: Ran, ask: Callable[..., Answer]) -> None:
    text = ask("explain", ran.failed, "--why-not", "id = 304").out
    assert "304: loaded from orders v1, orders.csv line 5; the run ended before the output was written" in text
    [row] = ask("explain", ran.failed, "--why-not", "id = 304", "--json").json["rows"]
    assert row["verdict"] == {"kind": "not_written", "outcome": "not reached"}


def test_a_run_that_failed_before_it_had_loaded_anything_says_so(
    ran: Ran, ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreted_shop(ran.shop.root, monkeypatch, failing=frozenset({"load"}))
    failed = ran.shop.run("close", "2026-03").record.run_id
    counts = ask("trace", failed).out
    assert counts.count("not reached") == 3
    for question in (("trace", failed, "--where", "TRUE"), ("explain", failed, "--why-not", "id = 301")):
        answer = ask(*question)
        assert answer.code == 1
        assert "the run ended before it had loaded orders" in answer.err
        assert "`clew show` says why it ended" in answer.err


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("not-a-row", '"not-a-row" is not a row id'),
        (RowIds("another run").row_id(0), "is a row of another run"),
    ],
)
def test_a_row_that_is_not_there_is_an_empty_answer_with_a_reason(
    ran: Ran, ask: Callable[..., Answer], row: str, problem: str
) -> None:
    history = ask("trace", ran.january, row, "--json")
    assert history.code == 3
    assert history.json["history"] == []
    assert history.json["diagnostic"]["code"] == "RowNotFound"
    assert problem in history.json["diagnostic"]["message"]
    state = ask("trace", ran.january, row, "--at", "10", "--json")
    assert (state.code, state.json["row_at_step"]) == (3, None)
    explained = ask("explain", ran.january, row, "usd", "--json")
    assert explained.code == 3
    assert explained.error[0] == "RowNotFound"


def test_a_row_beyond_the_end_of_its_file_is_not_found(ran: Ran, ask: Callable[..., Answer]) -> None:
    answer = ask("trace", ran.january, RowIds(ran.january).row_id(5_000), "--json")
    assert (answer.code, answer.json["history"]) == (3, [])


@pytest.mark.parametrize(
    "arguments",
    [("trace", "--step", "15"), ("trace", "--at", "15"), ("explain", "--where", "id = 103", "usd", "--at", "15")],
)
def test_a_step_that_is_not_there_lists_those_that_are(
    ran: Ran, ask: Callable[..., Answer], arguments: tuple[str, ...]
) -> None:
    name, *others = arguments
    answer = ask(name, ran.january, *others, "--json")
    assert answer.code == 3
    assert answer.error == ("StepOutOfRange", "the run has no step 15; its steps are 10, 20, 30")


def test_a_column_that_is_not_there_suggests_a_near_one(ran: Ran, ask: Callable[..., Answer]) -> None:
    for arguments in (
        ("explain", ran.january, "--where", "id = 103", "curency"),
        ("explain", ran.january, "--where", "curency = 1", "usd"),
        ("explain", ran.january, "--why-not", "curency = 1"),
        ("trace", ran.january, "--where", "curency = 1"),
    ):
        answer = ask(*arguments)
        assert answer.code == 1
        assert "error UnknownColumn" in answer.err
        assert 'did you mean "currency"?' in answer.err


def test_a_column_that_a_later_step_adds_is_unknown_before_it(ran: Ran, ask: Callable[..., Answer]) -> None:
    answer = ask("explain", ran.january, "--where", "id = 103", "usd", "--at", "0")
    assert answer.code == 1
    assert "orders after step 0" in answer.err


def test_a_condition_that_names_many_rows_where_one_is_needed_shows_some(ran: Ran, ask: Callable[..., Answer]) -> None:
    answer = ask("explain", ran.january, "--where", "id > 0", "usd", "--json")
    assert answer.code == 2
    assert answer.error == ("AmbiguousRow", "more than 3 rows match, where one is needed: 101, 102, 103")
    several = ask("explain", ran.january, "--where", "id > 105", "usd", "--json")
    assert several.error == ("AmbiguousRow", "2 rows match, where one is needed: 106, 107")
    none = ask("explain", ran.january, "--where", "id = 0", "usd", "--json")
    assert (none.code, none.error[0]) == (3, "RowNotFound")


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain",),
        ("explain", "usd"),
        ("explain", "a", "b", "--where", "id = 1"),
        ("trace", "--limit", "0"),
        ("trace", "--at", "x"),
    ],
)
def test_questions_that_are_incomplete_are_wrong_usage(
    ran: Ran, ask: Callable[..., Answer], arguments: tuple[str, ...]
) -> None:
    name, *others = arguments
    answer = ask(name, ran.january, *others)
    assert answer.code == 2
    assert "error WrongUsage" in answer.err


def test_pages_behind_a_row_of_another_run_are_refused(ran: Ran, ask: Callable[..., Answer]) -> None:
    other = RowIds(ran.february).row_id(0)
    answer = ask("trace", ran.january, "--step", "10", "--after", other, "--json")
    assert (answer.code, answer.error[0]) == (2, "InvalidPage")


# Damage


@pytest.fixture
def copy(ran: Ran, tmp_path: Path) -> Path:
    """The workspace once more, to be damaged."""
    return Path(shutil.copytree(ran.shop.root, tmp_path / "copy"))


def a_file(copy: Path, run_id: str, pattern: str) -> Path:
    return next(iter(sorted((copy / ".clew/storage/runs" / run_id).glob(pattern))))


@pytest.mark.parametrize("pattern", ["input/orders/*.parquet", "changes/*/*.parquet", "changes/*/*/part.json"])
@pytest.mark.parametrize("damage", ["truncated", "missing", "overwritten"])
def test_a_damaged_file_is_named_and_nothing_is_read_from_it(
    ran: Ran, ask: Callable[..., Answer], copy: Path, pattern: str, damage: str
) -> None:
    file = a_file(copy, ran.january, pattern)
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"\x00" * len(content))
    row = RowIds(ran.january).row_id(0)
    for arguments in (("trace", ran.january, row), ("explain", ran.january, "--where", "id = 101", "usd")):
        answer = ask(*arguments, "--json", cwd=copy)
        assert answer.code == 1
        assert answer.error[0] == "DamagedTrace"
        assert file.relative_to(copy / ".clew/storage").as_posix() in answer.error[1]
    other = ask("trace", ran.february, "--json", cwd=copy)
    assert other.code == 0


def test_a_trace_of_a_newer_version_is_refused_by_name(ran: Ran, ask: Callable[..., Answer], copy: Path) -> None:
    file = a_file(copy, ran.january, "changes/*/*/part.json")
    described = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(described | {"version": 99, "something": "new"}), encoding="utf-8")
    answer = ask("trace", ran.january, "--json", cwd=copy)
    assert answer.code == 1
    assert answer.error[0] == "NewerTraceLayout"
    assert file.relative_to(copy / ".clew/storage").as_posix() in answer.error[1]
    assert "99" in answer.error[1]


def test_a_plan_that_is_gone_is_said_to_be(ran: Ran, ask: Callable[..., Answer], copy: Path) -> None:
    for plan in (copy / ".clew/storage/plans").iterdir():
        plan.unlink()
    answer = ask("trace", ran.january, "--json", cwd=copy)
    assert (answer.code, answer.error[0]) == (1, "UnreadablePlan")
    assert answer.error[1].endswith(".json is gone from the storage root")
    shown = ask("show", ran.january, cwd=copy)
    assert shown.code == 0
    assert "error UnreadablePlan" in shown.out
    assert ask("show", ran.january, "--json", cwd=copy).json["status"] == "COMPLETED"


def test_a_run_whose_files_are_gone_is_still_shown_by_its_events(
    ran: Ran, ask: Callable[..., Answer], copy: Path
) -> None:
    shutil.rmtree(copy / ".clew/storage/runs" / ran.january)
    shown = ask("show", ran.january, cwd=copy)
    assert shown.code == 0
    assert "Drop small" in shown.out
    assert "error DamagedTrace" in shown.out
    assert ask("trace", ran.january, "--json", cwd=copy).error[0] == "DamagedTrace"


def test_a_run_whose_upstream_is_gone_is_explained_as_far_as_it_goes(
    ran: Ran, ask: Callable[..., Answer], copy: Path
) -> None:
    assert ask("rm", ran.january, "--force", cwd=copy).code == 0
    shown = ask("explain", ran.report, "--where", "id = 104", "usd", "--json", cwd=copy)
    assert shown.code == 0
    assert shown.json["cause"]["kind"] == "loaded"
    assert shown.json["cause"]["upstream"] is None


# What is shown


def test_the_rows_of_a_step_are_those_that_a_condition_finds(ran: Ran, ask: Callable[..., Answer]) -> None:
    changed = ask("trace", ran.january, "--step", "10", "--where", 'currency = "USD"', "--json").json
    assert [row["after"]["usd"] for row in changed["rows"]] == ["1.00", "3.00", "5.00", "7.00"]
    deleted = ask("trace", ran.january, "--step", "20", "--where", "amount > 100", "--json").json
    assert (deleted["rows"], deleted["has_more"]) == ([], False)
    first = ask("trace", ran.january, "--step", "10", "--where", 'currency = "USD"', "--limit", "1", "--json").json
    assert (len(first["rows"]), first["has_more"]) == (1, True)
    after = first["rows"][0]["row_id"]
    others = ask("trace", ran.january, "--step", "10", "--where", 'currency = "USD"', "--after", after, "--json").json
    assert others["rows"] == changed["rows"][1:]


def test_rows_of_a_step_go_by_their_natural_key(ran: Ran, ask: Callable[..., Answer]) -> None:
    title, headings, row, count = ask("trace", ran.january, "--step", "20").out.splitlines()
    assert title == "step 20 Drop small"
    assert headings.split() == ["row", "id", "key", "change", "what"]
    assert row.split()[1:] == ["101", "deleted"]
    assert count == "1 row"


def test_a_row_id_is_never_wrapped_and_columns_that_were_asked_about_come_first(
    ran: Ran, ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "52")
    headings, *rows, count = ask("trace", ran.january, "--where", "usd > 5").out.splitlines()
    assert headings.split() == ["row", "id", "id", "usd"]
    assert [line.split()[1:] for line in rows] == [["106", "6.60"], ["107", "7.00"]]
    assert all(RowIds.is_row_id(line.split()[0]) for line in rows)
    assert count == "2 rows after step 30; 2 more columns with --json"


def test_the_next_page_is_named(ran: Ran, ask: Callable[..., Answer]) -> None:
    for question in (("--at", "10"), ("--step", "10")):
        *_, row, count, more = ask("trace", ran.january, *question, "--limit", "2").out.splitlines()
        assert count.startswith("2 rows")
        assert more == f"more rows: --limit, --after {row.split()[0]}"


def test_a_row_that_is_not_there_is_an_error_with_its_code(ran: Ran, ask: Callable[..., Answer]) -> None:
    for question in ((), ("--at", "10")):
        answer = ask("trace", ran.january, "not-a-row", *question)
        assert (answer.code, answer.out) == (3, "")
        assert answer.err.startswith('error RowNotFound: "not-a-row" is not a row id\n')


def test_a_mistake_in_a_condition_is_shown_where_it_is(ran: Ran, ask: Callable[..., Answer]) -> None:
    answer = ask("trace", ran.january, "--where", "id = 1 AND curency = 2")
    place, excerpt, caret = answer.err.splitlines()
    assert place == '<where>:1:12: error UnknownColumn: no column "curency" in orders'
    assert excerpt == "    1 | id = 1 AND curency = 2"
    assert caret == '      |            ^^^^^^^ did you mean "currency"?'


@pytest.mark.parametrize(
    ("arguments", "pair"),
    [
        (("ROW", "--where", "id = 1"), "ROW and --where"),
        (("ROW", "--step", "10"), "ROW and --step"),
        (("ROW", "--after", "x"), "ROW and --after"),
        (("--step", "10", "--at", "20"), "--step and --at"),
    ],
)
def test_options_of_two_questions_are_refused(
    ran: Ran, ask: Callable[..., Answer], arguments: tuple[str, ...], pair: str
) -> None:
    answer = ask("trace", ran.january, *arguments)
    assert answer.code == 2
    assert answer.err.splitlines() == [
        f"error WrongUsage: {pair} cannot be combined",
        "  `clew trace --help` shows the usage",
    ]


def test_a_page_that_cannot_be_written_is_told_with_its_name(
    ran: Ran, ask: Callable[..., Answer], tmp_path: Path
) -> None:
    for path in (tmp_path, tmp_path / "missing" / "page.html"):
        answer = ask("explain", ran.january, "--where", "id = 104", "usd", "--html", str(path))
        assert answer.code == 1
        assert answer.err.startswith(f"error UnwritableOutput: cannot write the output: {path}: ")


def test_a_mistake_in_a_condition_of_an_explanation_is_shown_where_it_is(ran: Ran, ask: Callable[..., Answer]) -> None:
    for question in (("--where", "id == 1", "usd"), ("--why-not", "id == 1")):
        assert "    1 | id == 1\n" in ask("explain", ran.january, *question).err


def test_a_column_may_have_its_table_before_it_as_in_expressions(ran: Ran, ask: Callable[..., Answer]) -> None:
    plain = ask("explain", ran.january, "--where", "id = 104", "usd", "--json")
    assert plain.code == 0
    assert ask("explain", ran.january, "--where", "orders.id = 104", "orders.usd", "--json").json == plain.json
