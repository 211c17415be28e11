"""The class of columns: what derives from a restricted column, what it chooses, what was marked later; and what the
environment makes of it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.auth.roles import AccessRole
from clew.captures.policy import CapturePolicy
from clew.definitions.capture_masks import Mask, MaskKind
from clew.definitions.privacy import InfluencedColumns, RoleName
from clew.diagnostics import UserError
from clew.plan.privacy import classes_of, privacy_by_column
from clew.privacy.masking import masked
from tests.privacy.clinic import MONTH, PERSONAL, PUBLIC, Clinic, copied, write_clinic


def settings_of(folder: Path, **dev: Any) -> Path:
    settings = json.loads((folder / "clew.yaml").read_text(encoding="utf-8"))
    settings["environments"]["dev"] |= dev
    (folder / "clew.yaml").write_text(json.dumps(settings, indent=1), encoding="utf-8")
    return folder


def test_the_roles_of_files_are_those_of_the_server() -> None:
    assert {role.value for role in RoleName} == {role.value for role in AccessRole}


def test_a_column_has_the_class_of_what_it_derives_from_and_of_what_chose_it(tmp_path: Path) -> None:
    plan = clew.open(write_clinic(tmp_path).root).plan("care")
    assert privacy_by_column(plan) == {
        "name": "personal",
        "diagnosis": "personal",
        "salary": "personal",
        "ssn": "secret",
        "pin": "secret",
        "head": "personal",  # looked up
        "greeting": "personal",  # derived
        "code": "secret",  # derived from a secret and a public column
        "risk": "personal",  # its selector reads the diagnosis
        "region": "secret",  # its join condition reads the number
        "payroll": "personal",  # a sum of personal values
    }
    # Group keys and deletions choose the rows of a summary, not its values.
    assert {"cost", "rows", "ward"}.isdisjoint(privacy_by_column(plan))
    assert classes_of(plan).merely_chosen() == {"risk", "region"}
    ignored = classes_of(plan, influenced=InfluencedColumns.PUBLIC).all()
    assert set(privacy_by_column(plan)) - set(ignored) == {"risk", "region"}


def test_the_class_goes_on_with_a_registered_dataset(tmp_path: Path) -> None:
    plan = clew.open(write_clinic(tmp_path).root).plan("report")
    found = privacy_by_column(plan)
    assert (found["greeting"], found["code"], found["pay"]) == ("personal", "secret", "personal")
    assert "total" not in found


def test_what_was_merely_chosen_shows_not_even_where_it_is_missing(clinic: Clinic, tmp_path: Path) -> None:
    folder = settings_of(copied(clinic.folder, tmp_path / "copy"), local_role="operator")
    found = clew.open(folder).get_run(clinic.care).trace(where="cost > 0")
    assert {row.state["risk"] for row in found.rows} == {"[masked]"}
    open_ = settings_of(folder, privacy={"influenced_columns": "public"})
    seen = {row.state["risk"] for row in clew.open(open_).get_run(clinic.care).trace(where="cost > 0").rows}
    assert None in seen
    assert any(isinstance(value, str) and PUBLIC in value for value in seen)


def test_a_mark_that_is_added_later_counts_for_older_runs(clinic: Clinic, tmp_path: Path) -> None:
    folder = settings_of(copied(clinic.folder, tmp_path / "copy"), local_role="operator")
    run = clew.open(folder).get_run(clinic.care)
    assert PUBLIC in str(run.trace(where="cost > 0").to_json())
    path = folder / "datasets" / "patients.yaml"
    dataset = json.loads(path.read_text(encoding="utf-8"))
    for column in dataset["main_table"]["columns"]:
        if column["name"] == "ward":
            column["privacy"] = "personal"
    path.write_text(json.dumps(dataset), encoding="utf-8")
    later = clew.open(folder).get_run(clinic.care)
    assert PUBLIC not in str(later.trace(where="cost > 0").to_json())
    with pytest.raises(UserError) as refused:
        later.trace(where='ward = "x"')
    assert refused.value.code == "ColumnNotVisible"
    assert not [job for job in later.postlude_jobs if PUBLIC in str(job)]


def test_a_mark_that_is_removed_still_counts_for_the_runs_that_had_it(clinic: Clinic, tmp_path: Path) -> None:
    folder = settings_of(copied(clinic.folder, tmp_path / "copy"), local_role="operator")
    path = folder / "datasets" / "patients.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(', "privacy": "personal"', ""), encoding="utf-8")
    assert PERSONAL not in str(clew.open(folder).get_run(clinic.care).trace(where="cost > 0").to_json())


@pytest.mark.parametrize(
    ("sight", "place"),
    [
        ({"operator": {"secret": "clear"}}, "secret"),
        ({"auditor": {"public": "masked", "personal": "clear"}}, "personal"),
        ({"viewer": {"personal": "masked"}}, "personal"),
    ],
)
def test_a_stricter_class_cannot_show_more(tmp_path: Path, sight: dict[str, Any], place: str) -> None:
    folder = settings_of(write_clinic(tmp_path).root, privacy={"roles": sight})
    found = [each for each in clew.open(folder).check().diagnostics if each.code == "InvalidValue"]
    assert [each.message for each in found if place in each.message]
    assert found[0].span is not None
    assert found[0].hint


@pytest.mark.parametrize(
    ("privacy", "problem"),
    [
        ({"roles": {"opertor": {}}}, "opertor"),
        ({"roles": {"operator": {"personal": "blurred"}}}, "blurred"),
        ({"roles": {"operator": {"private": "clear"}}}, "private"),
        ({"influenced_columns": "maybe"}, "maybe"),
    ],
)
def test_mistakes_in_the_settings_are_reported(tmp_path: Path, privacy: dict[str, Any], problem: str) -> None:
    folder = settings_of(write_clinic(tmp_path).root, privacy=privacy)
    found = clew.open(folder).check().diagnostics
    assert [each for each in found if problem in each.message and each.span is not None]


def filtering(folder: Path, condition: str) -> Path:
    path = folder / "projects" / "care.yaml"
    project = json.loads(path.read_text(encoding="utf-8"))
    project["operations"][0]["after_request"] = [{"name": "Pick", "tasks": [{"filter": condition}, {"describe": {}}]}]
    path.write_text(json.dumps(project), encoding="utf-8")
    return folder


@pytest.mark.parametrize("condition", ['name = "x"', "ssn IS NOT NULL", "LEN(head) > 1"])
def test_a_job_cannot_filter_by_a_column_that_the_role_may_not_see(tmp_path: Path, condition: str) -> None:
    folder = filtering(write_clinic(tmp_path).root, condition)
    with pytest.raises(UserError) as refused:
        clew.open(folder).dry_run("care", MONTH)
    assert refused.value.code == "CaptureNotAllowed"
    assert "filters by" in refused.value.diagnostic.message
    assert refused.value.diagnostic.hint


def test_a_job_may_filter_by_a_personal_column_where_the_environment_shows_it(tmp_path: Path) -> None:
    folder = settings_of(write_clinic(tmp_path).root, captures={"personal_columns": "include"})
    environment = clew.open(folder).environment
    policy = CapturePolicy.of("dev", environment, "operator")
    assert policy.may_filter_by("personal")
    assert not policy.may_filter_by("secret")


@pytest.mark.parametrize(
    ("value", "mask", "expected"),
    [
        (None, Mask(MaskKind.HASH), None),
        (None, Mask(MaskKind.REDACT), None),
        ("Ann", Mask(MaskKind.REDACT), "[masked]"),
        ("4111 1111", Mask(MaskKind.KEEP_LAST, 4), "*****1111"),
        ("1111", Mask(MaskKind.KEEP_LAST, 4), "****"),
        ("Ann", Mask(MaskKind.HASH), None),
        (True, Mask(MaskKind.KEEP_LAST, 2), "**ue"),
    ],
)
def test_masks(value: Any, mask: Mask, expected: str | None) -> None:
    found = masked(value, mask, "salt")
    if mask.kind is MaskKind.HASH and value is not None:
        assert found is not None
        assert (len(found), found == masked(value, mask, "salt"), found != masked(value, mask, "other")) == (
            16,
            True,
            True,
        )
    else:
        assert found == expected
