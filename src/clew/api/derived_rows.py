"""Rows of the state store that follow from the events of a run, held against what the events say.

They are there so that lists, workers and lineage need not read histories. What nothing follows from is left out: who
holds a lease until when, its fencing token, and how often the platform has tried a step beyond what events name.
"""

from collections.abc import Iterator, Mapping, Sequence

from clew.api.state import State
from clew.diagnostics import ClewError
from clew.events.bodies import RunQueued
from clew.events.envelope import StoredEvent
from clew.events.meanings import meaning_of
from clew.events.reducer import Head, advance, waits_for_approval
from clew.events.snapshot import RunSnapshot
from clew.runs.request import RunRecord
from clew.storage.layout import run_of_file
from clew.storage.parts import Part
from clew.store.run_heads import RunHeadRow
from clew.store.run_rows import slot_of
from clew.tracelink.part_blocks import published_blocks

_UNREADABLE = (ClewError, ValueError, KeyError, TypeError)


def head_problems(
    record: RunRecord, row: RunHeadRow, events: Sequence[StoredEvent], told: RunSnapshot
) -> Iterator[str]:
    """What the row of a run says against its events: its state, its place in the queue, what has been seen of it."""
    if record.approval_pending != waits_for_approval(events):
        yield "its record and its events differ in whether it waits for an approval"
    if (record.status, record.started_at, record.completed_at) != (told.status, told.started_at, told.completed_at):
        yield f"its record says {record.status.value}, its events say {told.status.value}"
    for name, is_right in _facts(row, record, events).items():
        if not is_right:
            yield f"{name} is {getattr(row, name)} in its record, which does not follow from its events"


def _facts(row: RunHeadRow, record: RunRecord, events: Sequence[StoredEvent]) -> Mapping[str, bool]:
    """Whether each column of the row is what it must be."""
    slot = slot_of(record.request)
    queued = [event for event in events if isinstance(event.body, RunQueued)]
    signals = [event.run_seq for event in events if meaning_of(event).signal is not None]
    # A run that was queued again has forgotten what it was told before.
    may_have_signal = {row.last_signal_seq > row.seen_signal_seq} | ({False} if len(queued) > 1 else set())
    heads = [Head(record.status, record.approval_pending, each) for each in may_have_signal]
    held = {slot} if record.status.is_under_way else {None} if record.status.is_terminal else {None, slot}
    return {
        "last_seq": row.last_seq == len(events),
        "last_hash": row.last_hash == (events[-1].raw.hash if events else None),
        "last_signal_seq": row.last_signal_seq == max(signals, default=0),
        "seen_signal_seq": 0 <= row.seen_signal_seq <= row.last_seq,
        "projected_seq": 0 <= row.projected_seq <= row.last_seq,
        "wants_worker": row.wants_worker in {head.wants_worker for head in heads},
        "not_before": not queued or row.not_before == _due(queued[-1]),
        "slot": row.slot == slot,
        "slot_held": row.slot_held in held,
    }


def _due(queued: StoredEvent) -> object:
    body = queued.body
    asked = body.not_before if isinstance(body, RunQueued) else None
    return asked if asked is not None else queued.persisted_at


def saved_state_problems(state: State, run_id: str) -> Iterator[str]:
    """What the saved state of a run says against its events."""
    try:
        saved, seq = state.stores.snapshots.load(run_id), state.run_heads.saved_seq(run_id)
    except _UNREADABLE as error:
        yield f"its saved state cannot be read: {error}"
        return
    if saved is None:
        if state.run_heads.head(run_id).projected_seq:
            yield "its saved state is gone"
        return
    events = state.stores.reader.events(run_id, limit=saved.last_event_seq)
    is_told = saved == advance(RunSnapshot(run_id), events).snapshot and seq == saved.last_event_seq
    if not is_told:
        yield "its saved state is not what its events say"


def attempt_problems(state: State, run_id: str, events: Sequence[StoredEvent]) -> Iterator[str]:
    """Events name attempts of the platform that were never counted."""
    counted, named = state.run_heads.attempts(run_id), dict[tuple[str, int], int]()
    for event in events:
        if event.engine_attempt_id is not None:
            key = (event.step_id, event.logical_attempt_id)
            named[key] = max(named.get(key, 1), event.engine_attempt_id)
    for (step_id, attempt), number in named.items():
        if counted.get((step_id, attempt), 1) < number:
            yield f"its events name attempt {number} of step {step_id}, which was not counted"
    known = {event.step_id for event in events}
    for step_id, _ in counted:
        if step_id not in known:
            yield f"attempts of a step {step_id} were counted, which no event names"


def block_problems(state: State, run_id: str, parts: Sequence[Part]) -> Iterator[str]:
    """The trace ids of rows are on record as the descriptions of files have them.

    Files that were taken over have the ids of the run that wrote them, for as long as that one is kept.
    """
    for part in parts:
        owners = {run_id, *(owner for file in part.files if (owner := run_of_file(file.path)) is not None)}
        right = [each for owner in owners for each in published_blocks(owner, part)]
        blocks = [each.block for each in published_blocks(run_id, part) if len(each.block)]
        # The last id, too: a block that was slipped in would hide those behind it.
        ends = [block.trace_id(place) for block in blocks for place in (0, len(block) - 1)]
        found = [tuple(state.tracelink.blocks.blocks_of([trace_id])) for trace_id in ends]
        if not all(each and each[0] in right for each in found):
            yield f"the record of trace ids of step {part.seq} is not what the files of its rows say"
