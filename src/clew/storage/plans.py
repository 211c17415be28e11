"""Plans as runs keep them: by digest, written once, never changed."""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from clew.diagnostics import UserError
from clew.diagnostics.codes.project import UNREADABLE_PLAN
from clew.diagnostics.codes.workspace import UNWRITABLE_FOLDER
from clew.plan import Plan, plan_from_json, plan_to_json

_MOST_ON_THE_SHELF = 16

PlanReader = Callable[[Path, str], Plan]
"""Gives the plan with a digest below a storage root."""


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


class PlanShelf:
    """The plans that were asked for last, for a process that stays: putting one together from its file takes longer
    than everything else about the page of a run. May be used by several threads.

    A file that is gone, or is not the one that was read, is not covered up by what is remembered.
    """

    def __init__(self) -> None:
        self._plans: OrderedDict[tuple[Path, int, int], Plan] = OrderedDict()
        self._lock = threading.Lock()

    def plan(self, storage_root: Path, digest: str) -> Plan:
        """The plan with a digest, as `kept_plan` gives it."""
        path = _path(storage_root, digest)
        try:
            found = path.stat()
        except OSError:
            return kept_plan(storage_root, digest)
        key = (path, found.st_mtime_ns, found.st_size)
        with self._lock:
            known = self._plans.get(key)
            if known is not None:
                self._plans.move_to_end(key)
                return known
        plan = kept_plan(storage_root, digest)
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > _MOST_ON_THE_SHELF:
                self._plans.popitem(last=False)
        return plan


def _path(storage_root: Path, digest: str) -> Path:
    return storage_root / "plans" / f"{digest}.json"
