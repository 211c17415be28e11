"""Takes over parts of an earlier run: the same files, under a description of this run.

Nothing is copied. The description lies in the folder of this run and names files in the folder of the run that wrote
them; they keep their digests, and every byte is compared before it is relied on. Garbage collection keeps files that
any description names.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date

from clew.diagnostics import UserError
from clew.events.values import CheckResult
from clew.plan.datasets import DatasetUse
from clew.plan.plan import Plan
from clew.plan.planned_checks import PlannedCheck
from clew.runs.reuse import Circumstances, EarlierRun, Reusable, TakenPart, answered, differing_use, reusable
from clew.storage.checked_files import TraceFiles
from clew.storage.committed import DescribedPart, publish_part
from clew.storage.drafts import draft
from clew.storage.layout import part_folder
from clew.storage.parts import READ_AS, TAKEN_OVER, Part, PartKind
from clew.storage.root import StorageRoot
from clew.storage.row_identity import RowIds


class TakingOver:
    """What one run takes over from another one."""

    def __init__(
        self,
        earlier: EarlierRun,
        plan: Plan,
        run_id: str,
        root: StorageRoot,
        *,
        looks_again: bool,
        version: str,
        spark: str,
        keeps_inputs: bool = False,
    ) -> None:
        self.earlier = earlier
        self.looks_again = looks_again
        """Whether the sources of inputs are looked at again."""
        self._keeps_inputs = keeps_inputs
        """Whether inputs are taken over whoever has read them, since they cannot be read again as they were."""
        self._plan, self._run_id, self._root = plan, run_id, root
        self._stranger = _stranger(earlier, version, spark)
        self._given = Circumstances(inputs=())
        self._found = Reusable()

    # Inputs

    def differs(self, use: DatasetUse) -> str | None:
        """Why the rows of a dataset cannot be those that the earlier run read; None if they can."""
        if self.looks_again and not self._keeps_inputs and self._stranger is not None:
            return self._stranger
        return differing_use(self.earlier, use)

    def input(self, use: DatasetUse) -> Part:
        """What the earlier run has pinned of a dataset."""
        found = self.earlier.part("input", use.key)
        assert found is not None  # noqa: S101 - `differs` has looked
        return found

    def is_same(self, use: DatasetUse, pinned: Sequence[Part]) -> bool:
        """Whether what was read anew, and kept apart, is byte by byte what the earlier run has."""
        mine = [_content(part) for part in pinned]
        return mine == [_content(part) for part in self._with_quarantine(use)]

    def take_input(self, use: DatasetUse) -> list[DescribedPart]:
        """Take over a dataset, with the rows of it that were kept apart. UserError if a file of it is damaged."""
        parts = self._with_quarantine(use)
        TraceFiles(self._root).verify(parts)
        return [self._described(part) for part in parts]

    def _with_quarantine(self, use: DatasetUse) -> list[Part]:
        kept = self.earlier.part("quarantine", use.key)
        return [self.input(use), *([kept] if kept is not None else [])]

    # Steps

    def decide(self, parts: Sequence[Part], skipped: Collection[int], today: date) -> None:
        """Find out which steps can be taken over, given what this run has committed."""
        own = [part for part in parts if (part.details or {}).get(TAKEN_OVER) != self.earlier.run_id]
        computed = {part.seq for part in own if part.kind == "created"}
        computed |= {step.seq for part in own for step in part.steps}
        self._given = Circumstances(
            inputs={part.name for part in parts if part.kind == "input"} - {part.name for part in own},
            computed=computed | set(skipped),
            same_day=self.earlier.today == today,
            stranger=self._stranger,
        )
        self._found = reusable(self.earlier, self._plan, self._given)
        damaged = self._damaged()
        if damaged:
            self._given = replace(self._given, damaged=damaged)
            self._found = reusable(self.earlier, self._plan, self._given)

    def _damaged(self) -> dict[tuple[PartKind, str], str]:
        found = dict[tuple[PartKind, str], str]()
        for taken in self._found.parts.values():
            try:
                TraceFiles(self._root).verify([taken.part])
            except UserError as error:
                for part in self.earlier.parts:
                    if {file.path for file in part.files} & {file.path for file in taken.part.files}:
                        found[part.kind, part.name] = error.diagnostic.message
        return found

    def forget(self) -> None:
        """Take over nothing more: the data of this run is not what it was when that was decided."""
        self._found = Reusable()

    def taken(self, seq: int) -> TakenPart | None:
        """What is taken over where a step begins; None if it is computed."""
        return self._found.parts.get(seq)

    def reason(self, seq: int) -> str | None:
        """Why a step is computed; None for an output, which is always written."""
        return self._found.reasons.get(seq)

    def answers(self, checks: Sequence[PlannedCheck]) -> list[CheckResult] | None:
        """What the earlier run has found by checks; None if it does not have all answers."""
        found = list[CheckResult]()
        for check in checks:
            result = answered(self.earlier, check, self._given)
            if result is None:
                return None
            found.append(self._of_this_run(result))
        return found

    def answer_at_load(self, check: PlannedCheck, inputs: Collection[str]) -> CheckResult | None:
        """What the earlier run has found by a check of a dataset, if that was taken over."""
        result = answered(self.earlier, check, Circumstances(inputs=inputs, same_day=False))
        return None if result is None else self._of_this_run(result)

    def _of_this_run(self, result: CheckResult) -> CheckResult:
        ordinal = RowIds(self.earlier.run_id).ordinal(result.example) if result.example is not None else None
        return result if ordinal is None else replace(result, example=RowIds(self._run_id).row_id(ordinal))

    def counts(self, seq: int) -> Mapping[str, int]:
        """What a step counted in the earlier run."""
        known = self.earlier.step(seq)
        return dict(known.counts) if known is not None else {}

    def take(self, taken: TakenPart, next_ordinal: int) -> DescribedPart:
        """Take over a part."""
        part = taken.part
        if taken.is_renumbered:
            files = [replace(file, ordinal=next_ordinal + number) for number, file in enumerate(part.files)]
            part = replace(part, files=tuple(files))
        return self._described(part)

    def _described(self, part: Part) -> DescribedPart:
        told = replace(part, details={**(part.details or {}), TAKEN_OVER: self.earlier.run_id})
        return publish_part(draft(self._root, part_folder(self._run_id, part.kind, part.name)), told)


def _stranger(earlier: EarlierRun, version: str, spark: str) -> str | None:
    """Why what the earlier run has computed may not be what would be computed now."""
    known = (earlier.snapshot.engine_run_ref or {}).get("version")
    if known != spark:
        return f"it was computed by Spark {known}, and this is Spark {spark}"
    others = sorted(earlier.versions - {version})
    return f"it was computed by {others[0]}, and this is {version}" if others else None


_OF_EACH_RUN = frozenset({READ_AS, TAKEN_OVER})


def _content(part: Part) -> object:
    """What a part holds, whichever attempt wrote it. A file without a digest is never written twice."""
    files = [(file.rows, file.sha256 or file.path, file.skipped, file.view) for file in part.files]
    excluded = part.excluded.sha256 if part.excluded is not None else None
    details = {name: value for name, value in (part.details or {}).items() if name not in _OF_EACH_RUN}
    return part.kind, part.name, part.columns, files, excluded, details
