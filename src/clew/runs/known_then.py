"""What was known at a time: the version of a project that ran, and the version of a dataset that was the newest."""

from collections.abc import Sequence
from datetime import UTC, datetime

from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE
from clew.diagnostics.codes.runs import NOT_KNOWN_THEN
from clew.runs.registry import DatasetVersion, ProjectVersion


def time_of(text: str, now: datetime) -> datetime:
    """A time that someone has written; without a time zone it is in UTC, and a date is its first moment."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        hint = "write 2026-02-03, 2026-02-03T17:30 or 2026-02-03T17:30+01:00"
        raise UserError(WRONG_USAGE.anywhere(problem=f'"{text}" is not a time', hint=hint)) from None
    at = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    if at > now:
        problem = f"{shown(at)} is still to come"
        raise UserError(WRONG_USAGE.anywhere(problem=problem, hint="name a time that has passed"))
    return at


def shown(at: datetime) -> str:
    """A time as messages show it."""
    return f"{at.astimezone(UTC).isoformat(sep=' ', timespec='seconds').removesuffix('+00:00')} UTC"


def project_then(project: str, versions: Sequence[ProjectVersion], at: datetime) -> ProjectVersion:
    """The version of a project that ran at a time. UserError NotKnownThen where none did."""
    for each in versions:
        if each.activated_at <= at and (each.deactivated_at is None or each.deactivated_at > at):
            return each
    first = min((each.activated_at for each in versions), default=None)
    if first is None:
        hint = "activate the project first; a draft has no versions that could be told apart by time"
    elif at < first:
        hint = f"its first version was activated at {shown(first)}"
    else:
        hint = "all its versions had been deactivated by then"
    raise UserError(
        NOT_KNOWN_THEN.anywhere(problem=f'no version of the project "{project}" was active', hint=hint, at=shown(at))
    )


def versions_then(
    dataset: str, versions: Sequence[DatasetVersion], at: datetime, pinned: int | None = None
) -> list[DatasetVersion]:
    """The versions of a registered dataset that there were at a time, newest first.

    UserError NotKnownThen where there was none, or where the one that was the newest may have been deleted since.
    """
    known = [each for each in versions if each.created_at <= at]
    if pinned is not None and any(each.version == pinned for each in known):
        return known
    before = known[0].version if known else 0
    after = min((each.version for each in versions if each.created_at > at), default=before + 1)
    if after > before + 1:
        is_one = after == before + 2
        gone = f"version {before + 1}" if is_one else f"versions {before + 1} to {after - 1}"
        what = f'{gone} of the dataset "{dataset}" no longer exist{"s" if is_one else ""}'
        why = (
            "`clew gc` deletes versions that nothing needs; `retention` of the environment says how long they are kept"
        )
        problem = f"{what}, so the one that was the newest is not known"
        raise UserError(NOT_KNOWN_THEN.anywhere(problem=problem, hint=why, at=shown(at)))
    if not known:
        problem = f'no version of the dataset "{dataset}" had been registered'
        first = min((each.created_at for each in versions), default=None)
        hint = None if first is None else f"its first version was registered at {shown(first)}"
        raise UserError(NOT_KNOWN_THEN.anywhere(problem=problem, hint=hint, at=shown(at)))
    return known
