"""Rules of data quality in a contract as checks of a dataset.

A metric that must be zero is a check of rows, so that single rows fail. Any other bound is one of all rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from clew.deferred import dataclass
from clew.definitions.contract_export import ENGINE, SEVERITY
from clew.lang.literals import text_of_value
from clew.lang.types import Kind, Type

Block = Mapping[str, object]

_OPERATORS = {
    "mustBe": "=",
    "mustNotBe": "<>",
    "mustBeGreaterThan": ">",
    "mustBeGreaterOrEqualTo": ">=",
    "mustBeLessThan": "<",
    "mustBeLessOrEqualTo": "<=",
}
_WARNINGS = frozenset({"warning", "warn", "info", "low"})
_OLDER_NAMES = {"duplicateCount": "duplicateValues", "nullCheck": "nullValues", "validValues": "invalidValues"}
"""What version 3.0 calls metrics, under `rule`."""
_DAYS = frozenset({Kind.DATE, Kind.TIMESTAMP})


def quoted(name: str) -> str:
    """A column in an expression."""
    return "`" + name.replace("`", "``") + "`"


def texts(value: object) -> list[object]:
    """The items of a list; none of anything else."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []


@dataclass(slots=True)
class RuleReading:
    """Turns rules into checks, and says which it leaves out."""

    types: Mapping[str, Type]
    """The types of the columns of the dataset."""
    notes: list[str] = field(default_factory=list)

    def checks(self, rules: object, column: str | None) -> Iterator[Block]:
        """The checks that rules of a column stand for, or of the whole table where it is None."""
        for rule in texts(rules):
            if isinstance(rule, Mapping):
                found = self._check(rule, column)
                if found is not None:
                    yield {**_named(rule), **found}

    def _check(self, rule: Block, column: str | None) -> Block | None:
        metric, kind = rule.get("metric") or rule.get("rule"), rule.get("type")
        written = rule.get("implementation")
        if kind == "custom" and rule.get("engine") == ENGINE and isinstance(written, Mapping):
            return written
        if kind in {"text", "sql", "custom"} or not isinstance(metric, str):
            said = {"text": "it is in words", "sql": "it is in SQL", "custom": f"it is for {rule.get('engine')}"}
            return self._left_out(rule, column, said.get(str(kind), "it has no metric"))
        found = self._metric(_OLDER_NAMES.get(metric, metric), rule, column)
        return None if found is None else {**found, **_severity(rule)}

    def _metric(self, metric: str, rule: Block, column: str | None) -> Block | None:
        of_rule = rule.get("arguments")
        arguments = {**rule, **(of_rule if isinstance(of_rule, Mapping) else {})}
        if metric == "rowCount":
            return self._bounded("COUNT_ALL()", rule, column)
        if metric == "duplicateValues":
            return self._duplicates(arguments, rule, column)
        if column is None or column not in self.types:
            return self._left_out(rule, column, "its column is not known")
        fails = self._failing(metric, arguments, column)
        if fails is None:
            return self._left_out(rule, column, f"the metric {metric} with these arguments is not known")
        if _is_zero(rule):
            return self._of_rows(metric, arguments, column, fails)
        return self._bounded(f"COUNT_IF({fails})", rule, column)

    def _of_rows(self, metric: str, arguments: Block, column: str, fails: str) -> Block:
        values = [each for each in texts(arguments.get("validValues")) if each is not None]
        pattern = arguments.get("pattern")
        if metric == "nullValues":
            return {"not_null": column}
        if metric == "invalidValues" and values and not isinstance(pattern, str):
            return {"in_set": {"column": column, "values": values}}
        if metric == "invalidValues" and not values:
            return {"pattern": {"column": column, "matches": pattern}}
        return {"expression": f"NOT COALESCE({fails}, FALSE)"}

    def _failing(self, metric: str, arguments: Block, column: str) -> str | None:
        """When a value counts for a metric."""
        name = quoted(column)
        if metric == "nullValues":
            return f"{name} IS NULL"
        if metric == "missingValues":
            missing = texts(arguments.get("missingValues"))
            listed = self._literals([each for each in missing if each is not None], column)
            parts = [*([f"{name} IS NULL"] if None in missing or not missing else []), *listed]
            return " OR ".join(parts)
        if metric != "invalidValues":
            return None
        values = [each for each in texts(arguments.get("validValues")) if each is not None]
        pattern = arguments.get("pattern")
        parts = [f"NOT ({each})" for each in self._literals(values, column)]
        parts += [f"NOT REGEX_MATCH({name}, {text_of_value(pattern)})"] if isinstance(pattern, str) else []
        return " OR ".join(parts) or None

    def _literals(self, values: Sequence[object], column: str) -> list[str]:
        """Whether a column has one of some values, as an expression; none where there are no values."""
        if not values:
            return []
        is_text = self.types[column].kind is Kind.STRING
        written = ", ".join(self.literal(str(value) if is_text else value, column) for value in values)
        return [f"{quoted(column)} IN ({written})"]

    def literal(self, value: object, column: str) -> str:
        """A value as a literal of the language, by the type of its column."""
        if self.types[column].kind in _DAYS and isinstance(value, str):
            return f"DATE({text_of_value(value[:10])})"
        return text_of_value(value)  # type: ignore[arg-type]

    def _duplicates(self, arguments: Block, rule: Block, column: str | None) -> Block | None:
        columns = [column] if column is not None else [str(each) for each in texts(arguments.get("properties"))]
        if not columns or not self.types.keys() >= set(columns):
            return self._left_out(rule, column, "its columns are not known")
        if _is_zero(rule):
            return {"unique": columns[0] if len(columns) == 1 else columns}
        if len(columns) > 1:
            return self._left_out(rule, column, "duplicates of several columns can only be forbidden")
        name = quoted(columns[0])
        return self._bounded(f"(COUNT({name}) - COUNT_DISTINCT({name}))", rule, column)

    def _bounded(self, measure: str, rule: Block, column: str | None) -> Block | None:
        """A number over all rows, compared as the rule says."""
        if rule.get("unit") == "percent":
            measure = f"{measure} * 100 / COUNT_ALL()"
        for operator, sign in _OPERATORS.items():
            bound = _number(rule.get(operator))
            if bound is not None:
                return {"total": f"{measure} {sign} {bound}"}
        for operator, negation in (("mustBeBetween", ""), ("mustNotBeBetween", "NOT ")):
            bounds = [_number(each) for each in texts(rule.get(operator))]
            if len(bounds) == 2 and None not in bounds:
                return {"total": f"{negation}({measure} BETWEEN {bounds[0]} AND {bounds[1]})"}
        return self._left_out(rule, column, "it has no bound that is a number")

    def _left_out(self, rule: Block, column: str | None, reason: str) -> Block | None:
        """No check, and a note that says why."""
        name = rule.get("name") or rule.get("description") or rule.get("metric") or rule.get("rule")
        said = f'the rule "{name}"' if name else "a rule"
        of = f" of {column}" if column is not None else ""
        self.notes.append(f"{said}{of} is left out: {reason}")
        return None


def _named(rule: Block) -> Block:
    return {key: str(rule[key]) for key in ("name", "description") if rule.get(key)}


def _severity(rule: Block) -> Block:
    for each in texts(rule.get("customProperties")):
        if isinstance(each, Mapping) and each.get("property") == f"{ENGINE}.{SEVERITY}":
            return {"severity": str(each.get("value"))}
    return {"severity": "warn"} if str(rule.get("severity") or "").lower() in _WARNINGS else {}


def _is_zero(rule: Block) -> bool:
    return _number(rule.get("mustBe")) == "0"


def _number(value: object) -> str | None:
    """A number as it is written in an expression."""
    if isinstance(value, bool) or (not isinstance(value, int | float) and not hasattr(value, "is_finite")):
        return None
    return f"{value:f}" if hasattr(value, "is_finite") else str(value)
