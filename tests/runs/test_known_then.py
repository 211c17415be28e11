"""What was known at a time: versions of projects and datasets, and how a time is written."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from clew.diagnostics import UserError
from clew.runs.known_then import project_then, shown, time_of, versions_then
from clew.runs.registry import DatasetVersion, ProjectStatus, ProjectVersion

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return datetime(2026, 2, number, 12, tzinfo=UTC)


def version(number: int, made: int) -> DatasetVersion:
    return DatasetVersion("closed", number, "closed", (), (), f"run-{number}", 30, day(made))


def of_project(number: int, since: int, until: int | None) -> ProjectVersion:
    ended = None if until is None else day(until)
    status: ProjectStatus = "active" if until is None else "inactive"
    return ProjectVersion("close", number, status, "digest", "{}", "", day(since), "ann", ended)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-02-03", datetime(2026, 2, 3, tzinfo=UTC)),
        ("2026-02-03T17:30", datetime(2026, 2, 3, 17, 30, tzinfo=UTC)),
        (" 2026-02-03 17:30:05 ", datetime(2026, 2, 3, 17, 30, 5, tzinfo=UTC)),
        ("2026-02-03T17:30+01:00", datetime(2026, 2, 3, 17, 30, tzinfo=timezone(timedelta(hours=1)))),
    ],
)
def test_a_time_without_a_zone_is_in_utc_and_a_date_is_its_first_moment(text: str, at: datetime) -> None:
    assert time_of(text, NOW) == at


@pytest.mark.parametrize(("text", "told"), [("yesterday", "is not a time"), ("2026-05-02", "is still to come")])
def test_what_is_no_time_of_the_past_is_refused(text: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as refused:
        time_of(text, NOW)
    assert refused.value.code == "WrongUsage"


def test_a_time_is_shown_in_utc() -> None:
    assert shown(datetime(2026, 2, 3, 1, tzinfo=timezone(timedelta(hours=2)))) == "2026-02-02 23:00:00 UTC"


def test_the_version_of_a_project_is_the_one_that_was_active() -> None:
    versions = [of_project(2, 10, None), of_project(1, 3, 7)]
    assert project_then("close", versions, day(5)).version == 1
    assert project_then("close", versions, day(3)).version == 1
    assert project_then("close", versions, day(10)).version == 2
    for when, hint in ((1, "its first version was activated at 2026-02-03 12:00:00 UTC"), (8, "had been deactivated")):
        with pytest.raises(UserError) as refused:
            project_then("close", versions, day(when))
        assert refused.value.code == "NotKnownThen"
        assert hint in str(refused.value.diagnostic.hint)
    with pytest.raises(UserError) as refused:
        project_then("close", [], day(1))
    assert "a draft has no versions" in str(refused.value.diagnostic.hint)


def test_the_newest_version_of_a_dataset_is_the_one_of_then() -> None:
    versions = [version(3, 9), version(2, 6), version(1, 3)]
    assert [each.version for each in versions_then("closed", versions, day(7))] == [2, 1]
    assert [each.version for each in versions_then("closed", versions, day(9))] == [3, 2, 1]
    with pytest.raises(UserError, match="no version of the dataset") as refused:
        versions_then("closed", versions, day(2))
    assert refused.value.code == "NotKnownThen"


def test_where_versions_were_deleted_the_newest_of_then_is_not_guessed() -> None:
    versions = [version(5, 9), version(2, 6), version(1, 3)]
    with pytest.raises(UserError, match='versions 3 to 4 of the dataset "closed" no longer exist'):
        versions_then("closed", versions, day(7))
    with pytest.raises(UserError, match="version 1 of the dataset"):
        versions_then("closed", [version(2, 6)], day(4))
    assert versions_then("closed", versions, day(5))[0].version == 1
    assert versions_then("closed", versions, day(9))[0].version == 5
    assert versions_then("closed", versions, day(7), pinned=1)[0].version == 2
