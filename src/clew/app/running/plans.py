"""Plans as runs keep them: by digest, written once, never changed."""

import json
from pathlib import Path

from clew.diagnostics import UserError
from clew.diagnostics.codes.project import UNREADABLE_PLAN
from clew.diagnostics.codes.workspace import UNWRITABLE_FOLDER
from clew.plan import Plan, plan_from_json, plan_to_json


def keep_plan(storage_root: Path, plan: Plan) -> Path:
    """Write a plan under its digest, if it is not there yet."""
    path = _path(storage_root, plan.digest)
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            staging = path.with_suffix(".staging")
            staging.write_text(json.dumps(plan_to_json(plan), sort_keys=True), encoding="utf-8")
            staging.replace(path)
    except OSError as error:
        hint = "check the `storage_root` of the environment, and that there is room"
        reason = error.strerror or error
        raise UserError(UNWRITABLE_FOLDER.anywhere(path=path.parent, reason=reason, hint=hint)) from error
    return path


def is_kept(storage_root: Path, digest: str) -> bool:
    """Whether there is a plan with a digest."""
    return _path(storage_root, digest).is_file()


def kept_plan(storage_root: Path, digest: str) -> Plan:
    """The plan with a digest."""
    path = _path(storage_root, digest)
    try:
        return plan_from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        problem = f"plans/{path.name}: {(error.strerror or str(error)).lower()}"
        raise UserError(UNREADABLE_PLAN.anywhere(problem=problem)) from error
    except ValueError as error:
        raise UserError(UNREADABLE_PLAN.anywhere(problem=f"plans/{path.name}: {error}")) from error


def _path(storage_root: Path, digest: str) -> Path:
    return storage_root / "plans" / f"{digest}.json"
