"""The answer to why a value changed: causes that add up to the difference, a bridge from one value to the other."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from clew.change.comparison import exact_difference
from clew.change.points import Point
from clew.deferred import dataclass
from clew.lang.typed import Value
from clew.trace.json_values import json_value
from clew.trace.results import Html, html_table

CauseKind = Literal["code", "input", "reference", "appended", "parameter", "period", "today"]
BridgeMode = Literal["shapley", "sequential"]


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A row that belongs to a cause, as far as the caller may see it."""

    change: Literal["added", "removed", "changed"]
    key: Mapping[str, Value]
    old: Mapping[str, Value]
    """The values that differ, in the first run."""
    new: Mapping[str, Value]
    alone: Decimal | None = None
    """By how much the value changes if nothing but this row does; None where it was not calculated."""
    row_a: str | None = None
    """Its id in the first run, if it is a row of the input and was there."""
    row_b: str | None = None

    def to_json(self) -> dict[str, object]:
        """The form of `clew why-changed --json`."""
        return {
            "change": self.change,
            "key": {name: json_value(value) for name, value in self.key.items()},
            "old": {name: json_value(value) for name, value in self.old.items()},
            "new": {name: json_value(value) for name, value in self.new.items()},
            "alone": None if self.alone is None else f"{self.alone:f}",
            "row_a": self.row_a,
            "row_b": self.row_b,
        }


@dataclass(frozen=True, slots=True)
class BridgeCause:
    """One thing that differs between the runs, and what it contributes."""

    kind: CauseKind
    title: str
    amount: Decimal
    """Its part of the difference. All parts add up to it."""
    alone: Decimal
    """By how much the value of the first run changes if nothing but this does."""
    details: tuple[str, ...] = ()
    rows: tuple[CauseRow, ...] = ()
    row_count: int = 0
    seq_a: int | None = None
    """The operation in the first run, if the cause is one operation that it has."""
    seq_b: int | None = None

    @property
    def interaction(self) -> Decimal:
        """What it contributes only together with other causes."""
        return exact_difference(self.alone, self.amount)

    def to_json(self) -> dict[str, object]:
        """The form of `clew why-changed --json`."""
        return {
            "kind": self.kind,
            "title": self.title,
            "amount": f"{self.amount:f}",
            "alone": f"{self.alone:f}",
            "interaction": f"{self.interaction:f}",
            "details": list(self.details),
            "rows": [row.to_json() for row in self.rows],
            "row_count": self.row_count,
            "seq_a": self.seq_a,
            "seq_b": self.seq_b,
        }


@dataclass(frozen=True, slots=True)
class ChangeBridge:
    """Why a value of the second run is not what it was in the first."""

    run_a: str
    run_b: str
    point_a: Point
    point_b: Point
    column: str
    where: str | None
    value_a: Decimal
    value_b: Decimal
    mode: BridgeMode
    causes: tuple[BridgeCause, ...]
    without_effect: tuple[str, ...] = ()
    """What differs too, and changes nothing about the value."""
    notes: tuple[str, ...] = ()
    recomputed: int = 0
    """How many mixtures of both runs were calculated."""

    @property
    def difference(self) -> Decimal:
        """The second value without the first."""
        return exact_difference(self.value_a, self.value_b)

    def to_text(self) -> str:
        """The whole bridge in one line."""
        parts = "; ".join(f"{each.title} {each.amount:+,f}" for each in self.causes)
        return f"{self.value_a:,f} -> {self.value_b:,f}: {parts or 'no difference'}"

    def to_json(self) -> dict[str, object]:
        """The form of `clew why-changed --json`."""
        return {
            "run_a": self.run_a,
            "run_b": self.run_b,
            "at_a": self.point_a.to_json(),
            "at_b": self.point_b.to_json(),
            "column": self.column,
            "where": self.where,
            "value_a": f"{self.value_a:f}",
            "value_b": f"{self.value_b:f}",
            "difference": f"{self.difference:f}",
            "mode": self.mode,
            "causes": [cause.to_json() for cause in self.causes],
            "without_effect": list(self.without_effect),
            "notes": list(self.notes),
            "recomputed": self.recomputed,
        }

    def _repr_html_(self) -> str:
        rows = [[each.kind, each.title, f"{each.amount:+,f}"] for each in self.causes]
        caption = f"{self.column}: {self.value_a:,f} → {self.value_b:,f}"
        return Html(html_table(caption, ["cause", "", "amount"], rows))
