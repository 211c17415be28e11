"""Asking for captures: names, modes, limits, columns, and what an environment does not allow."""

import json
from pathlib import Path

import pytest

from clew.captures.policy import CapturePolicy, job_violations
from clew.captures.requests import PARAMETER, CaptureRequest, KeptColumn, requests_in, requests_of
from clew.definitions import CaptureMode, Mask, MaskKind, capture_wishes_of_data, capture_wishes_of_file
from clew.diagnostics import UserError
from clew.plan import Plan
from tests.captures.capture_plans import people_plan, policy

DEV, PROD = policy(), policy(mode="prod")
ALL_COLUMNS = ["id", "name", "pin", "city", "amount", "greeting", "door", "size", "_period", "_labels"]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return people_plan(tmp_path)


def ask(plan: Plan, *wishes: object, under: CapturePolicy = DEV) -> tuple[CaptureRequest, ...]:
    return requests_of(plan, capture_wishes_of_data(list(wishes), "captures"), under)  # type: ignore[arg-type]


def refusal(plan: Plan, *wishes: object, under: CapturePolicy = DEV) -> UserError:
    with pytest.raises(UserError) as error:
        ask(plan, *wishes, under=under)
    return error.value


def kept(request: CaptureRequest) -> list[str]:
    return [column.name for column in request.columns]


def test_a_breakpoint_is_asked_for_by_its_name_its_label_or_all_at_once(plan: Plan) -> None:
    assert [each.breakpoint for each in ask(plan, "greet::main::kept", "noted")] == [
        "greet::main::kept",
        "greet::main::noted",
    ]
    assert [each.seq for each in ask(plan, "*")] == [1, 3, 4]


@pytest.mark.parametrize(("name", "hint"), [("keept", "kept"), ("greet::main::keep", "greet::main::kept")])
def test_an_unknown_breakpoint_is_refused_with_a_near_name(plan: Plan, name: str, hint: str) -> None:
    error = refusal(plan, name)
    assert error.code == "UnknownBreakpoint"
    assert hint in (error.diagnostic.hint or "")


def test_a_label_that_two_instances_have_names_both(tmp_path: Path) -> None:
    project = """
id: greet
input_dataset: people
operations:
  - {seq: 10, use: {fragment: mark, as: first}}
  - {seq: 20, use: {fragment: mark, as: second}}
"""
    (tmp_path / "fragments").mkdir()
    (tmp_path / "fragments" / "mark.yaml").write_text(
        "{id: mark, operations: [{seq: 1, name: Mark, type: update, assign: marked,"
        " arguments: {assignments: [{column: size, expression: amount}]}}]}"
    )
    plan = people_plan(tmp_path, project)
    hint = refusal(plan, "marked").diagnostic.hint or ""
    assert "greet::first::marked" in hint
    assert "greet::second::marked" in hint
    assert ask(plan, "second::marked")[0].seq == 20


def test_each_mode_can_be_asked_for_and_another_word_is_refused(plan: Plan) -> None:
    found = ask(plan, *(f"kept={mode}" for mode in CaptureMode))
    assert [each.mode for each in found] == list(CaptureMode)
    error = refusal(plan, "kept=ful_raw")
    assert error.code == "InvalidValue"
    assert "full_raw" in (error.diagnostic.hint or "") + error.diagnostic.message


def test_words_that_name_no_capture_are_all_told_without_a_place(plan: Plan) -> None:
    error = refusal(plan, "kept=stat", "kept=everything", "=stats", "kept=", 5, None, ["kept"])
    assert {(each.code, each.span) for each in error.diagnostics} == {("InvalidValue", None)}
    how = "write BREAKPOINT or BREAKPOINT=MODE"
    assert {each.message: each.hint for each in error.diagnostics} == {
        'no capture mode "stat"': 'did you mean "stats"?',
        'no capture mode "everything"': "it is one of stats, sample_raw, sample_view, full_raw, full_view",
        '"=stats" is not a capture': how,
        '"kept=" is not a capture': how,
        "5 is not a capture": how,
        "None is not a capture": how,
        "['kept'] is not a capture": how,
    }
    with pytest.raises(UserError) as alone:
        capture_wishes_of_data(5, "--capture")  # type: ignore[arg-type]
    assert alone.value.diagnostic.hint == "write --capture BREAKPOINT or --capture BREAKPOINT=MODE"


@pytest.mark.parametrize(
    "wish",
    [
        {"breakpoint": "kept", "limits": {"max_rows": -1}},
        {"breakpoint": "kept", "limits": {"max_bytes": 0}},
        {"breakpoint": "kept", "limits": {"max_columns": 0}},
        {"breakpoint": "kept", "sample": {"rows": 0}},
        {"breakpoint": "kept", "ttl_days": 0},
        {"breakpoint": "kept", "include_columns": "SOME"},
        {"breakpoint": "kept", "mask": {"city": "rot13"}},
        {"breakpoint": "kept", "mask": {"city": {"keep_last": 0}}},
        "kept=",
        "=stats",
    ],
)
def test_values_that_make_no_sense_are_refused(plan: Plan, wish: object) -> None:
    assert refusal(plan, wish).code == "InvalidValue"


def test_limits_are_the_stricter_of_what_is_asked_for_and_allowed(plan: Plan) -> None:
    strict = policy(captures={"max_rows": 50, "max_bytes": 1000})
    [found] = ask(plan, {"breakpoint": "kept", "limits": {"max_rows": 10, "max_bytes": 9999}}, under=strict)
    assert (found.limits.max_rows, found.limits.max_bytes, found.limits.max_columns) == (10, 1000, 2000)


def test_columns_are_taken_and_left_by_name_and_pattern(plan: Plan) -> None:
    [found] = ask(plan, {"breakpoint": "kept", "include_columns": ["id", "*t*"], "exclude_columns": ["am*"]})
    assert kept(found) == ["id", "city", "_period", "_labels"]
    assert {each.column: each.reason for each in found.left_out} == {
        "name": "EXCLUDED",
        "pin": "EXCLUDED",
        "amount": "EXCLUDED",
        "greeting": "PERSONAL",
        "door": "EXCLUDED",
        "size": "EXCLUDED",
    }


@pytest.mark.parametrize("which", ["include_columns", "exclude_columns"])
def test_a_pattern_that_matches_nothing_is_refused_with_a_near_name(plan: Plan, which: str) -> None:
    error = refusal(plan, {"breakpoint": "kept", which: ["citi"]})
    assert error.code == "NoMatchingColumn"
    assert "city" in (error.diagnostic.hint or "")


def test_a_column_that_is_added_later_is_not_there_yet(plan: Plan) -> None:
    assert refusal(plan, {"breakpoint": "greeted", "include_columns": ["size"]}).code == "NoMatchingColumn"


def test_without_a_mode_dev_keeps_everything_and_prod_a_sample(plan: Plan) -> None:
    assert ask(plan, "kept")[0].mode is CaptureMode.FULL_RAW
    assert ask(plan, "kept", under=PROD)[0].mode is CaptureMode.SAMPLE_RAW
    only_statistics = policy(mode="prod", captures={"modes": ["stats"]})
    assert ask(plan, "kept", under=only_statistics)[0].mode is CaptureMode.STATS


def test_a_mode_that_the_environment_does_not_allow_is_refused(plan: Plan) -> None:
    error = refusal(plan, "kept=full_raw", under=PROD)
    assert error.code == "CaptureNotAllowed"
    assert "sample_raw" in (error.diagnostic.hint or "")


def test_stores_and_times_to_live_are_held_to_the_environment(plan: Plan) -> None:
    under = policy(
        captures={"ttl_days": 5},
        sinks={
            "review": {"type": "capture_store", "path": "review", "max_ttl_days": 2},
            "log": {"type": "training_log", "path": "log"},
        },
    )
    assert ask(plan, {"breakpoint": "kept", "store": "review", "ttl_days": 2}, under=under)[0].store == "review"
    for wish in ({"store": "reviews"}, {"store": "log"}, {"store": "review", "ttl_days": 3}, {"ttl_days": 6}):
        assert refusal(plan, {"breakpoint": "kept", **wish}, under=under).code == "CaptureNotAllowed"
    for trick in ("../outside", "/etc", "review/../../x"):
        assert refusal(plan, {"breakpoint": "kept", "store": trick}, under=under).code == "CaptureNotAllowed"


def test_all_problems_are_told_at_once(plan: Plan) -> None:
    error = refusal(plan, "nowhere", {"breakpoint": "kept", "mode": "full_raw", "store": "none"}, under=PROD)
    assert sorted(each.code for each in error.diagnostics) == [
        "CaptureNotAllowed",
        "CaptureNotAllowed",
        "UnknownBreakpoint",
    ]


def test_personal_columns_and_what_derives_from_them_are_left_out(plan: Plan) -> None:
    [found] = ask(plan, "kept")
    assert kept(found) == ["id", "city", "amount", "size", "_period", "_labels"]
    assert {each.column: each.reason for each in found.left_out} == {
        "name": "PERSONAL",
        "greeting": "PERSONAL",
        "pin": "SECRET",
        "door": "SECRET",
    }
    assert not found.shows_personal


def test_to_ask_for_a_personal_column_by_name_is_refused_where_it_is_left_out(plan: Plan) -> None:
    for column in ("name", "greeting", "pin"):
        error = refusal(plan, {"breakpoint": "kept", "include_columns": [column]})
        assert error.code == "CaptureNotAllowed"
        assert column in error.diagnostic.message


def test_personal_columns_are_masked_where_the_environment_masks(plan: Plan) -> None:
    masking = policy(captures={"personal_columns": "mask", "mask": {"keep_last": 2}})
    [found] = ask(plan, {"breakpoint": "kept", "mask": {"city": "hash", "name": "redact"}}, under=masking)
    assert kept(found) == ALL_COLUMNS
    masks = {column.name: str(column.mask) for column in found.columns if column.mask is not None}
    assert masks == {
        "name": "redact",
        "greeting": "hash",
        "city": "hash",
        "pin": "redact",
        "door": "redact",
    }


def test_last_characters_are_kept_of_values_as_they_were_loaded_only(tmp_path: Path) -> None:
    project = """
id: greet
input_dataset: people
operations:
  - {seq: 1, name: Greet, type: update, selector: amount > 5, assign: kept,
     arguments: {assignments: [{column: name, expression: 'CONCAT("Hello ", name)'}]}}
"""
    masking = policy(captures={"personal_columns": "mask", "mask": {"keep_last": 2}})
    [found] = ask(people_plan(tmp_path, project), "kept", under=masking)
    assert {column.name: str(column.mask) for column in found.columns if column.mask} == {
        "name": "hash",
        "pin": "redact",
    }


@pytest.mark.parametrize(
    ("environment", "asked", "counts"),
    [
        ("hash", {"keep_last": 50}, "hash"),
        ("redact", "hash", "redact"),
        ({"keep_last": 2}, {"keep_last": 9}, "keep_last(2)"),
        ({"keep_last": 2}, {"keep_last": 1}, "keep_last(1)"),
        ({"keep_last": 2}, "hash", "hash"),
        ("hash", "redact", "redact"),
    ],
)
def test_nobody_weakens_the_mask_of_the_environment(
    plan: Plan, environment: object, asked: object, counts: str
) -> None:
    masking = policy(captures={"personal_columns": "mask", "mask": environment})
    [found] = ask(plan, {"breakpoint": "kept", "mask": {"name": asked, "pin": asked}}, under=masking)
    masks = {column.name: str(column.mask) for column in found.columns if column.mask is not None}
    assert (masks["name"], masks["pin"]) == (counts, "redact")


def test_personal_columns_are_shown_where_environment_and_role_permit(plan: Plan) -> None:
    named = {"breakpoint": "kept", "include_columns": ["id", "name"]}
    for_auditors = {"include_roles": ["auditor"]}
    auditor = policy("auditor", captures=for_auditors)
    [found] = ask(plan, named, under=auditor)
    assert kept(found) == ["id", "name", "_period", "_labels"]
    assert found.shows_personal
    assert "name" not in kept(ask(plan, "kept", under=auditor)[0])
    assert refusal(plan, named, under=policy("engineer", captures=for_auditors)).code == "CaptureNotAllowed"

    included = {"personal_columns": "include"}
    assert "name" in kept(ask(plan, "kept", under=policy(captures=included))[0])
    for_some = policy("engineer", captures={**included, **for_auditors})
    assert "name" not in kept(ask(plan, "kept", under=for_some)[0])


def test_secret_columns_are_never_kept_as_they_are(plan: Plan) -> None:
    open_to_all = policy("admin", captures={"personal_columns": "include", "include_roles": ["admin"]})
    assert not {"pin", "door"} & set(kept(ask(plan, "kept", under=open_to_all)[0]))
    assert refusal(plan, {"breakpoint": "kept", "include_columns": ["pin"]}, under=open_to_all).code


@pytest.mark.parametrize(
    "labelling",
    [
        "type: update, arguments: {assignments: [{column: _labels, expression: name}]}",
        "type: aggregate, arguments: {group_by: [city], aggregations: [{column: _labels, expression: MIN_AGG(name)}]}",
        """type: append, arguments: {source: {dataset_id: people}, aggregation: {group_by: [people.city],
           aggregations: [{column: _labels, expression: MAX_AGG(people.name)}]}}""",
    ],
)
def test_labels_that_are_made_of_a_personal_column_are_personal(tmp_path: Path, labelling: str) -> None:
    project = f"""
id: greet
input_dataset: people
operations:
  - {{seq: 1, name: Label, {labelling}}}
  - {{seq: 2, name: Copy, type: update, assign: kept,
     arguments: {{assignments: [{{column: note, expression: _labels}}]}}}}
"""
    plan = people_plan(tmp_path, project)
    [found] = ask(plan, "kept")
    assert not {"_labels", "note"} & set(kept(found))
    assert "_period" in kept(found)
    assert refusal(plan, {"breakpoint": "kept", "include_columns": ["_labels"]}).code == "CaptureNotAllowed"


def test_a_job_that_names_labels_made_of_a_personal_column_is_refused(tmp_path: Path) -> None:
    project = """
id: greet
input_dataset: people
operations:
  - {seq: 1, name: Label, type: update, assign: kept, arguments: {assignments: [{column: _labels, expression: name}]},
     after_request: [{name: labels, tasks: [{topk: {column: _labels}}]}]}
"""
    [problem] = job_violations(people_plan(tmp_path, project), DEV)
    assert problem.code == "CaptureNotAllowed"
    assert "_labels" in problem.message


def test_a_file_of_captures_is_read_with_places(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "captures.yaml"
    path.write_text(
        "captures:\n"
        "  - breakpoint: kept\n"
        "    mode: sample_view\n"
        "    sample: {rows: 5}\n"
        "    include_columns: ALL\n"
        "    exclude_columns: [city]\n"
        "  - {breakpoint: nowhere}\n"
    )
    wishes = capture_wishes_of_file(path, tmp_path)
    [found] = requests_of(plan, wishes[:1], DEV)
    assert (found.mode, found.sample_rows, "city" in kept(found)) == (CaptureMode.SAMPLE_VIEW, 5, False)
    with pytest.raises(UserError) as error:
        requests_of(plan, wishes, DEV)
    span = error.value.diagnostic.span
    assert span is not None
    assert (span.file, span.line) == ("captures.yaml", 7)


def test_a_capture_that_was_read_can_be_sent_and_read_again(plan: Plan) -> None:
    detailed = {
        "breakpoint": "kept",
        "mode": "sample_raw",
        "limits": {"max_bytes": 9000, "max_rows": 90, "max_columns": 3},
        "sample": {"rows": 5},
        "exclude_columns": ["cit*"],
        "mask": {"name": {"keep_last": 2}, "amount": "hash"},
        "ttl_days": 2,
    }
    wishes = capture_wishes_of_data([detailed, "kept"], "captures")
    sent = json.loads(json.dumps([wish.to_data() for wish in wishes]))
    again = capture_wishes_of_data(sent, "captures")
    assert requests_of(plan, again, DEV) == requests_of(plan, wishes, DEV)
    assert [wish.to_data() for wish in again] == [wish.to_data() for wish in wishes]


@pytest.mark.parametrize(
    "text", ["captures: {}\n", "captures:\n  - {brakepoint: kept}\n", "captures: [1]\n", "- kept\n"]
)
def test_a_file_that_is_none_of_captures_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "captures.yaml"
    path.write_text(text)
    with pytest.raises(UserError):
        capture_wishes_of_file(path, tmp_path)


def test_a_request_survives_the_parameters_of_a_run(plan: Plan) -> None:
    masking = policy(captures={"personal_columns": "mask"})
    found = ask(plan, "*", {"breakpoint": "kept", "mask": {"city": {"keep_last": 3}}}, under=masking)
    again = requests_in({PARAMETER: [each.to_json() for each in found]})
    assert again == found
    assert KeptColumn("city", Mask(MaskKind.KEEP_LAST, 3)) in again[-1].columns
    assert requests_in({}) == ()
