"""Answers rest on events that nobody has changed: a run is compared with its seals before its rows are read.

Where this machine does not have the key, that is left to the record of the read, which needs it.
"""

from clew.api.kept_checkpoints import checkpoint_file, last_checkpoint
from clew.api.state import State
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.trace import FORGED_HISTORY
from clew.events.chain import SealKey
from clew.events.reducer import advance
from clew.events.snapshot import RunSnapshot
from clew.runs.environment import RunEnvironment
from clew.runs.seal_keys import known_seal_key
from clew.runs.view import RunFacts

_UNREADABLE = (ClewError, ValueError, KeyError, TypeError)
"""What an edited document may cause where it is read."""


def require_sealed(state: State, environment: RunEnvironment, facts: RunFacts) -> None:
    """Raise UserError ForgedHistory if a run is not what was recorded: its request, its events, or its state."""
    key = known_seal_key(environment)
    if key is None:
        return
    runs, record = state.sealed_runs, facts.record
    if not runs.has_begun():
        if _has_checkpoints(environment):
            raise forged(record.run_id, "the ledger of its environment is gone")
        return
    _require_whole_ledger(state, environment, key, record.run_id)
    events = runs.events(record.run_id)
    problem = runs.problem(record, events, key)
    if problem is not None:
        raise forged(record.run_id, problem)
    try:
        told = advance(RunSnapshot(record.run_id), [event.read() for event in events]).snapshot
    except _UNREADABLE:
        raise forged(record.run_id, "its events cannot be read") from None
    if told != facts.snapshot:
        raise forged(record.run_id, "its saved state is not what its events say")


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
