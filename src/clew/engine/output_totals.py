"""What Spark counts and adds up while it writes an output: rows that its selector leaves out, and control totals.

The numbers are part of the job that writes the rows. They are observed below the selector, so that what is left out is
seen as well as what is written. `clew.trace.reconciliation` compares them with what the trace says.
"""

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal, localcontext
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.engine.expressing import Expressing
from clew.engine.names import named
from clew.engine.operations.output import SELECTED, chosen_by
from clew.engine.sql import quoted
from clew.lang.typed import columns_of
from clew.plan.group_marks import GIVEN, MISSING, MODULUS, SEPARATOR, WEIGHTS, has_marks, written_mark
from clew.plan.operations import OutputStep
from clew.plan.plan import Plan
from clew.plan.planned_controls import PlannedControl
from clew.plan.recorded_controls import controls_at
from clew.storage.parts import ORDINAL

_LEFT_OUT = "left_out"
_DIGITS = 60
"""More than a sum of numbers with 38 digits ever has."""

_SIDES = ("written", _LEFT_OUT)

Amounts = Mapping[str, Mapping[str, str]]
"""By control total: what was `written` and what was `left_out`, as decimal numbers, and the marks of groups of both."""


@dataclass(frozen=True, slots=True)
class OutputTotals:
    """Rows that were left out, None where the output takes all, and amounts."""

    left_out: int | None = None
    amounts: Amounts = field(default_factory=dict)


class OutputWatch:
    """Watches the rows of one output on their way to its files."""

    def __init__(self, plan: Plan, step: OutputStep, expressing: Expressing) -> None:
        self._step = step
        self._expressing = expressing
        self._controls = controls_at(plan, step)
        self._marked = {index for index, control in enumerate(self._controls) if has_marks(plan, step, control)}
        self._seen = list[Observation]()

    def watched(self, rows: DataFrame) -> DataFrame:
        """The rows, with what the output selects marked. As they are where there is nothing to add up."""
        if self._step.selector is None and not self._controls:
            return rows
        step, observation = self._step, Observation()
        named_by = () if step.file_per is None else columns_of(step.file_per.tree)
        needed = {ORDINAL, "_deleted", *step.columns_named, *(name for _, name in named_by)} - {"_row_id"}
        weights = [named(_weight(self._controls[index]), _weight_of(index)) for index in sorted(self._marked)]
        amounts = [
            named(_as_decimal(self._expressing.sql(control.expression.tree), control), _amount(index))
            for index, control in enumerate(self._controls)
        ]
        selected = named(f"coalesce({chosen_by(step, self._expressing)}, FALSE)", SELECTED)
        marked = rows.selectExpr(*map(quoted, sorted(needed)), selected, *amounts, *weights)
        self._seen.append(observation)
        return marked.observe(observation, *(F.expr(sql).alias(name) for name, sql in self._sums().items()))

    def totals(self) -> OutputTotals:
        """What was seen, once all rows are written."""
        if not self._seen:
            return OutputTotals()
        seen = [observation.get for observation in self._seen]
        left_out = sum(int(each[_LEFT_OUT]) for each in seen) if self._step.selector is not None else None
        amounts = dict[str, Mapping[str, str]]()
        for index, control in enumerate(self._controls):
            sums = {side: _added([each[f"{_amount(index)}_{side}"] for each in seen]) for side in _SIDES}
            if all(each is not None for each in sums.values()):
                amounts[control.name] = {side: str(each) for side, each in sums.items()} | self._marks(index, seen)
        return OutputTotals(left_out, amounts)

    def _marks(self, index: int, seen: list[dict[str, Any]]) -> dict[str, str]:
        """What both sides amount to in their groups."""
        if index not in self._marked:
            return {}
        found = dict[str, str]()
        for side in _SIDES:
            rows = sum(int(each[f"{_weight_of(index)}_{side}"] or 0) for each in seen)
            amount = _added([each[f"{_weight_of(index)}_{side}_amount"] or "0" for each in seen])
            found[f"{side}_groups"] = written_mark(rows, amount or Decimal(0))
        return found

    def _sums(self) -> dict[str, str]:
        sides = self._sides()
        sums = {_LEFT_OUT: f"count_if({sides[_LEFT_OUT]})"}
        for index, control in enumerate(self._controls):
            amount = _amount(index)
            for side, condition in sides.items():
                zero = f"CAST(0 AS DECIMAL(38, {control.scale}))"
                value = f"CASE WHEN {condition} THEN coalesce({amount}, {zero}) ELSE {zero} END"
                empty = f"CASE WHEN count(1) = 0 THEN {zero} END"
                sums[f"{amount}_{side}"] = f"CAST(coalesce(try_sum({value}), {empty}) AS STRING)"
                if index in self._marked:
                    sums |= self._marks_of(index, side, condition)
        return sums

    def _marks_of(self, index: int, side: str, condition: str) -> dict[str, str]:
        """Rows and amounts of a side, each with the weight of its group."""
        weight, amount = _weight_of(index), _amount(index)
        one = f"CASE WHEN {condition} THEN {weight} ELSE 0L END"
        part = f"coalesce({amount}, 0) % CAST({MODULUS} AS DECIMAL(7, 0)) * CAST({weight} AS DECIMAL(5, 0))"
        value = f"CASE WHEN {condition} THEN {part} END"
        return {f"{weight}_{side}": f"sum({one})", f"{weight}_{side}_amount": f"CAST(sum({value}) AS STRING)"}

    def _sides(self) -> dict[str, str]:
        lives = "" if self._step.include_deleted else " AND NOT `_deleted`"
        return {"written": SELECTED, _LEFT_OUT: f"NOT {SELECTED}{lives}"}


def _amount(index: int) -> str:
    return f"__amount{index}"


def _weight_of(index: int) -> str:
    return f"__weight{index}"


def _weight(control: PlannedControl) -> str:
    """The weight of the group of a row, as `clew.plan.group_marks` has it."""
    texts = [f"coalesce(concat('{GIVEN}', CAST({quoted(name)} AS STRING)), '{MISSING}')" for name in control.by]
    joined = f"concat_ws(char({ord(SEPARATOR)}), {', '.join(texts)})"
    return f"1L + crc32(CAST({joined} AS BINARY)) % {WEIGHTS}L"


def _as_decimal(sql: str, control: PlannedControl) -> str:
    """An amount as a decimal; NULL where it is none, such as for a double that is not a number."""
    return f"try_cast({sql} AS DECIMAL(38, {control.scale}))"


def _added(texts: list[str | None]) -> Decimal | None:
    """The sum; None where a part of it has too many digits."""
    found = [Decimal(text) for text in texts if text is not None]
    with localcontext(prec=_DIGITS):
        return sum(found, Decimal(0)) if len(found) == len(texts) else None
