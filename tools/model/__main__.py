"""Checks the model of a run: `python -m tools.model TLA2TOOLS.jar`, or `make model`.

TLC goes through every state that the model can reach. It must find nothing wrong with the code as it is, and it must
find each mistake that is planted.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MODEL = Path(__file__).with_name("run.tla")

INVARIANTS = ("EachStepOnce", "InOrder", "OneHolder", "ReadersSeeWhatWasCommitted", "NothingIsLost")
STEPWISE = ("CommitsHoldTheToken", "NoneReplacesALaterOne")
AT_LAST = ("TheRunEnds", "BusesHearOfIt")

BOUNDS: Mapping[str, int] = {"Steps": 1, "Crashes": 1, "Delays": 1, "Refusals": 1, "Attempts": 2}


@dataclass(frozen=True)
class Case:
    """One check: bounds, what is left out on purpose, and what TLC is to say about it."""

    name: str
    mistake: str = "none"
    found: str | None = None
    """The property that TLC must find violated; None where it must find nothing."""
    properties: tuple[str, ...] = STEPWISE
    bounds: Mapping[str, int] = field(default_factory=dict)
    may_stop: bool = False
    """Whether a state from which nothing can happen is not reported: what must happen at last tells more."""

    def configuration(self) -> str:
        """The file that TLC reads."""
        numbers = {**BOUNDS, **self.bounds}
        return "\n".join(
            [
                "SPECIFICATION Spec",
                "CONSTANTS",
                "  Workers = {w1, w2}",
                *(f"  {name} = {number}" for name, number in numbers.items()),
                f'  Mistake = "{self.mistake}"',
                f"INVARIANTS {' '.join(INVARIANTS)}",
                f"PROPERTIES {' '.join(self.properties)}",
            ]
        )


CASES = (
    Case("the code as it is: what must never happen", bounds={"Steps": 2}),
    Case("the code as it is: what must happen at last", properties=AT_LAST),
    Case("a commit that does not check the token", "no fence", "CommitsHoldTheToken"),
    Case("an output that is published without a check", "no check", "NoneReplacesALaterOne"),
    Case("older attempts that are not swept away", "no sweep", "NoneReplacesALaterOne"),
    Case("attempts that share a staging folder", "shared staging", "NoneReplacesALaterOne"),
    Case("a lease with the token of the one before", "same token", "OneHolder"),
    Case("events without an idempotency key", "no key", "EachStepOnce"),
    Case("an outbox that is filled after the commit", "outbox apart", "NothingIsLost"),
    Case("an outbox that forgets before it delivers", "forget first", "NothingIsLost"),
    Case("a lease that never runs out", "leases for ever", "TheRunEnds", ("TheRunEnds",), may_stop=True),
    Case("a lost commit that is taken for one without an answer", "lost is done", "InOrder", bounds={"Steps": 2}),
    Case("an event that is stored before its output is visible", "commit first", "ReadersSeeWhatWasCommitted"),
    Case("an event that is sent only once", "no second try", "BusesHearOfIt", ("BusesHearOfIt",), may_stop=True),
)


@dataclass(frozen=True)
class Verdict:
    """What TLC said."""

    violated: frozenset[str]
    states: int
    text: str


def check(case: Case, jar: Path) -> Verdict:
    """Run TLC."""
    with tempfile.TemporaryDirectory(prefix="clew-model-") as folder:
        place = Path(folder)
        (place / "run.tla").write_text(MODEL.read_text(encoding="utf-8"), encoding="utf-8")
        (place / "run.cfg").write_text(case.configuration(), encoding="utf-8")
        java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", str(jar), "tlc2.TLC"]
        asked = [*java, "-config", "run.cfg", "-workers", "2", *(["-deadlock"] if case.may_stop else []), "run.tla"]
        answer = subprocess.run(asked, cwd=place, capture_output=True, text=True, check=False)  # noqa: S603
    text = answer.stdout
    violated = set(re.findall(r"Invariant (\w+) is violated", text))
    violated |= set(re.findall(r"Action property (\w+) is violated", text))
    if "Temporal properties were violated" in text:
        # TLC does not say which, so a case that expects one checks it alone.
        violated |= set(case.properties) & set(AT_LAST)
    if "Deadlock reached" in text:
        violated.add("a deadlock")
    counted = re.findall(r"([\d,]+) distinct states found", text)
    if not counted:
        raise SystemExit(f"TLC did not run: {text}{answer.stderr}")
    return Verdict(frozenset(violated), int(counted[-1].replace(",", "")), text)


def main() -> int:
    """Check all cases, or those whose names have one of the given words. 1 where TLC does not say what it must."""
    jar, words = Path(sys.argv[1]), sys.argv[2:]
    wrong = 0
    for case in CASES:
        if words and not any(word in case.name for word in words):
            continue
        verdict = check(case, jar)
        expected = frozenset([case.found] if case.found else [])
        is_right = verdict.violated == expected if not expected else bool(verdict.violated & expected)
        told = ", ".join(sorted(verdict.violated)) or "nothing"
        sys.stdout.write(f"{'ok   ' if is_right else 'WRONG'} {case.name}: {verdict.states:,} states, found {told}\n")
        sys.stdout.flush()
        wrong += not is_right
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
