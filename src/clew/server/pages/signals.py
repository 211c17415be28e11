"""The signals that somebody may send to a run in its present state."""

from collections.abc import Callable
from dataclasses import dataclass

from clew.runs.request import RunRecord
from clew.runs.signal_rules import rule_refusal
from clew.runs.signals import Signal, SignalType
from clew.runs.snapshot import RunSnapshot

_WORDS = {
    SignalType.APPROVE: ("Approve", "The run starts as soon as a worker is free."),
    SignalType.PAUSE: ("Pause", "The run stands still after the step that is under way."),
    SignalType.RESUME: ("Resume", "The run goes on with its next step."),
    SignalType.RETRY_STEP: (
        "Retry step",
        "Another attempt at the step that failed, with what was committed before it.",
    ),
    SignalType.SKIP_STEP: ("Skip step", "The run goes on without the step that failed. This changes results."),
    SignalType.RETRY_RUN: ("Run again", "A new run of the same project for the same period."),
    SignalType.CANCEL: ("Cancel", "The run ends. What was published stays."),
}
_OF_A_STEP = frozenset({SignalType.RETRY_STEP, SignalType.SKIP_STEP})
_GRAVE = frozenset({SignalType.SKIP_STEP, SignalType.CANCEL})


@dataclass(frozen=True, slots=True)
class SignalButton:
    """A signal that can be sent now."""

    signal: SignalType
    title: str
    meaning: str
    step_id: str | None
    is_grave: bool
    """Whether it cannot be taken back."""


def signal_buttons(
    record: RunRecord, snapshot: RunSnapshot, may_send: Callable[[SignalType], bool]
) -> tuple[SignalButton, ...]:
    """The signals that the role allows and the state of the run makes sense of."""
    found = list[SignalButton]()
    for signal, (title, meaning) in _WORDS.items():
        step = snapshot.failed_step if signal in _OF_A_STEP else None
        if not may_send(signal) or (signal in _OF_A_STEP and step is None):
            continue
        told = Signal(signal_id="", run_id=record.run_id, type=signal, step_id=step)
        if rule_refusal(told, record, snapshot) is None:
            label = f"{title} {step}" if step is not None else title
            found.append(SignalButton(signal, label, meaning, step, signal in _GRAVE))
    return tuple(found)
