"""Answers rest on events that nobody has changed: a run is compared with its seals before anyone sees it or its rows.

Where this machine does not have the key, that is left to the record of the read, which needs it.
"""

from clew.api.kept_checkpoints import checkpoint_file, last_checkpoint
from clew.api.state import State
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.trace import FORGED_HISTORY
from clew.events.chain import SealKey
from clew.events.reducer import advance, waits_for_approval
from clew.events.snapshot import RunSnapshot
from clew.runs.environment import RunEnvironment
from clew.runs.request import RunRecord
from clew.runs.seal_keys import known_seal_key
from clew.runs.view import RunFactsReader

_LOOKS = 5
"""How often a run is looked at that moves meanwhile."""
_UNREADABLE = (ClewError, ValueError, KeyError, TypeError)
"""What an edited document may cause where it is read."""


def require_sealed(state: State, environment: RunEnvironment, run_id: str) -> None:
    """Raise UserError ForgedHistory if a run is not what was recorded: its request, its events, or its state."""
    key = known_seal_key(environment)
    if key is None:
        return
    if not state.sealed_runs.has_begun():
        if _has_checkpoints(environment):
            raise forged(run_id, "the ledger of its environment is gone")
        return
    _require_whole_ledger(state, environment, key, run_id)
    for _ in range(_LOOKS):
        record = state.reading.listing.run(run_id)
        problem = _problem(state, environment, record, key)
        if problem is None:
            return
        if state.reading.listing.run(run_id).last_seq == record.last_seq:  # it has not moved meanwhile
            raise forged(run_id, problem)


def _problem(state: State, environment: RunEnvironment, record: RunRecord, key: SealKey) -> str | None:
    """What was changed about a run, by its events and by the rows that are derived from them."""
    events = state.sealed_runs.events(record.run_id)
    problem = state.sealed_runs.problem(record, events, key)
    if problem is not None:
        return problem
    try:
        read = [event.read() for event in events]
        told = advance(RunSnapshot(record.run_id), read).snapshot
        # As it was saved, and not as roles see it.
        saved = RunFactsReader(state, environment).projected(record.run_id).snapshot
    except _UNREADABLE:
        return "its events cannot be read"
    if told != saved:
        return "its saved state is not what its events say"
    if (record.status, record.started_at, record.completed_at) != (told.status, told.started_at, told.completed_at):
        return f"its record says {record.status.value}, its events say {told.status.value}"
    if record.approval_pending != waits_for_approval(read):
        return "its record and its events differ in whether it waits for an approval"
    return None


def _require_whole_ledger(state: State, environment: RunEnvironment, key: SealKey, run_id: str) -> None:
    """Raise if entries are missing: others that are still there could tell an older story than the one that was."""
    checkpoint = last_checkpoint(checkpoint_file(environment), key)
    seq, own_hash = (checkpoint.seq, checkpoint.hash) if checkpoint is not None else (None, "")
    problem = state.sealed_runs.ledger_problem(seq, own_hash)
    if problem is not None:
        raise forged(run_id, problem)


def _has_checkpoints(environment: RunEnvironment) -> bool:
    """Whether the ledger had entries once."""
    path = checkpoint_file(environment)
    return path.exists() and path.stat().st_size > 0


def forged(run_id: str, problem: str) -> UserError:
    """The error that says so."""
    return UserError(FORGED_HISTORY.anywhere(run_id=run_id, problem=problem))
