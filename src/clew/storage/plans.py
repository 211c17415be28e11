"""Plans as runs keep them: by digest, written once, never changed."""

# ruff: noqa: PLC0415 - what reads plans is imported when one is read: a list of runs needs none

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from clew.diagnostics import UserError
from clew.diagnostics.codes.project import UNREADABLE_PLAN
from clew.diagnostics.codes.workspace import UNWRITABLE_FOLDER
from clew.diagnostics.file_system import OutOfReach, unavailable
from clew.storage.layout import PLANS, plan_key
from clew.storage.root import StorageKey, StorageRoot

if TYPE_CHECKING:
    from clew.plan import Plan

_MOST_ON_THE_SHELF = 16

PlanReader: TypeAlias = "Callable[[StorageRoot, str], Plan]"
"""Gives the plan with a digest below a storage root."""


def keep_plan(root: StorageRoot, plan: "Plan") -> None:
    """Write a plan under its digest, if it is not there yet. Any number of first runs may do that at once."""
    from clew.plan.json_form import plan_to_json

    key = plan_key(plan.digest)
    try:
        root.write_new(key, json.dumps(plan_to_json(plan), sort_keys=True).encode())
    except FileExistsError as error:
        # An older Clew may have written the same plan with other words around it. What cannot be read is damaged.
        if not _has_digest(root, plan.digest):
            raise _unwritable(root, error) from error
    except OutOfReach as error:
        raise unavailable(error) from error
    except OSError as error:
        raise _unwritable(root, error) from error


def _has_digest(root: StorageRoot, digest: str) -> bool:
    try:
        return _plan_of(root.read_bytes(plan_key(digest))).digest == digest
    except (UserError, OSError, ValueError):
        return False


def _unwritable(root: StorageRoot, error: OSError) -> UserError:
    hint = "check the `storage_root` of the environment, and that there is room"
    reason = error.strerror or error
    return UserError(UNWRITABLE_FOLDER.anywhere(path=f"{root.address}/{PLANS}", reason=reason, hint=hint))


def is_kept(root: StorageRoot, digest: str) -> bool:
    """Whether there is a plan with a digest."""
    return root.exists(plan_key(digest))


def kept_plan(root: StorageRoot, digest: str) -> "Plan":
    """The plan with a digest. UserError UnreadablePlan where it is gone, or is not the one that was kept."""
    from clew.plan.json_form import digest_of

    plan = unchecked_plan(root, digest)
    if digest_of(plan) != digest:
        problem = f"{plan_key(digest)} was changed: its digest differs"
        raise UserError(UNREADABLE_PLAN.anywhere(problem=problem, hint="`clew verify` tells what else was changed"))
    return plan


def unchecked_plan(root: StorageRoot, digest: str) -> "Plan":
    """What lies where a plan should be, for those who compare it."""
    key = plan_key(digest)
    try:
        return _plan_of(_content(root, key))
    except OutOfReach as error:
        raise unavailable(error) from error
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            hint = "restore the storage root from a backup; the events of the run are still there, its rows are not"
            problem = f"{key} is gone from the storage root"
            raise UserError(UNREADABLE_PLAN.anywhere(problem=problem, hint=hint)) from error
        problem = f"{key}: {(error.strerror or str(error)).lower()}"
        raise UserError(UNREADABLE_PLAN.anywhere(problem=problem)) from error
    except ValueError as error:
        raise UserError(UNREADABLE_PLAN.anywhere(problem=f"{key}: {error}")) from error


def _content(root: StorageRoot, key: StorageKey) -> bytes:
    if root.copies is None:
        return root.read_bytes(key)
    return root.copies.through(f"plan {root.address}/{key}", lambda: root.read_bytes(key))


def _plan_of(content: bytes) -> "Plan":
    from clew.plan.json_form import plan_from_json

    return plan_from_json(json.loads(content))


class PlanShelf:
    """The plans that were asked for last, for a process that stays: putting one together from its file takes longer
    than everything else about the page of a run. May be used by several threads.

    A file that is gone, or is not the one that was read, is not covered up by what is remembered.
    """

    def __init__(self) -> None:
        self._plans: OrderedDict[tuple[str, str, str], Plan] = OrderedDict()
        self._lock = threading.Lock()

    def plan(self, root: StorageRoot, digest: str) -> "Plan":
        """The plan with a digest, as `kept_plan` gives it."""
        try:
            found = root.stat(plan_key(digest))
        except OSError:
            return kept_plan(root, digest)
        key = (root.address, found.key, found.version)
        with self._lock:
            known = self._plans.get(key)
            if known is not None:
                self._plans.move_to_end(key)
                return known
        plan = kept_plan(root, digest)
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > _MOST_ON_THE_SHELF:
                self._plans.popitem(last=False)
        return plan
