"""From a dataset and a period to the places where its data lies: the rules of a resolver, tried in order."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from typing import Literal

from clew.deferred import dataclass
from clew.definitions import PathStrategy, Period, PeriodTree, Resolver
from clew.definitions.resolver import ANY_LEVEL, Rule
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE
from clew.lang import Row, Scope, Table, check_condition, columns_of, evaluator, parse
from clew.lang.typed import Expression
from clew.lang.types import DATE, STRING
from clew.plan.datasets import DatasetUse
from clew.plan.file_rules import FileRules, rules_of

RULE_SCOPE = Scope(
    (
        Table("period", {"identifier": STRING, "level": STRING, "start_date": DATE, "end_date": DATE}),
        Table("dataset", {"id": STRING, "name": STRING}),
        Table("table", {"name": STRING}),
    )
)
"""What the `when` of a resolver rule can see."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_FITS_IN_A_MESSAGE = 300
_NOT_OF_THE_PERIOD = frozenset({"table", "dataset"})


@dataclass(frozen=True, slots=True)
class ResolvedSource:
    """One place to read data from."""

    datasource_id: str
    kind: Literal["path", "table"]
    location: str
    """The path below the root of the datasource, or the table, with all placeholders filled in."""
    rule: str
    period: str
    """The period whose data is expected here."""
    holds_one_period: bool
    """Whether the rule ties the place to that period, so that its rows need not say which period they belong to."""
    format: str = ""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    rules: FileRules = field(default_factory=FileRules, hash=False)
    """How values are written there, and what happens to rows that are not as they should be."""
    corrections: str | None = None
    """The path of the file with corrected rows, where the rule names one."""


def resolve(
    use: DatasetUse, resolver: Resolver, period: Period, periods: PeriodTree, *, today: date
) -> tuple[ResolvedSource, ...]:
    """Where the data of a dataset for a period lies, by the first rule that applies."""
    reasons = list[str]()
    for rule in resolver.rules:
        found = _apply(rule, use, period, periods, today)
        if not isinstance(found, str):
            return found
        reasons.append(f'"{rule.name}": {found}')
    problem = (
        f'no rule of the resolver "{resolver.id}" says where the data of "{use.dataset_id}" for the period '
        f'"{period.identifier}" lies: {"; ".join(reasons)}'
    )
    hint = "add a rule for this period, or run for another one"
    raise UserError(
        SOURCE_UNAVAILABLE.at(resolver.place("rules"), problem=problem, hint=hint), *_each(resolver, reasons)
    )


def rules_considered(
    use: DatasetUse, resolver: Resolver, period: Period, periods: PeriodTree, *, today: date
) -> Iterator[tuple[str, str | None]]:
    """The rules up to the first that applies, each with the reason why it does not; None for the one that does."""
    for rule in resolver.rules:
        found = _apply(rule, use, period, periods, today)
        yield rule.name, found if isinstance(found, str) else None
        if not isinstance(found, str):
            return


def rules_passed_over(
    use: DatasetUse, resolver: Resolver, period: Period, periods: PeriodTree, *, today: date
) -> Iterator[tuple[tuple[ResolvedSource, ...], str]]:
    """The places that the other rules name for a period, each with the reason why the rule did not count."""
    used = None
    for rule in resolver.rules:
        found = _apply(rule, use, period, periods, today)
        if used is None and not isinstance(found, str):
            used = rule.name
            continue
        expanded = _expand(rule.data_level, period, periods)
        if isinstance(expanded, str):
            continue
        reason = f"did not apply: {found}" if isinstance(found, str) else f'comes after "{used}", which applied'
        yield _merged(_source(rule, use, each, is_tied=True) for each in expanded), f'the rule "{rule.name}" {reason}'


def _each(resolver: Resolver, reasons: Sequence[str]) -> list[Diagnostic]:
    """The reasons at their rules, where there are too many for one message."""
    if sum(map(len, reasons)) < _FITS_IN_A_MESSAGE:
        return []
    return [
        SOURCE_UNAVAILABLE.at(rule.span, problem=f"the rule {reason}", hint="")
        for rule, reason in zip(resolver.rules, reasons, strict=True)
    ]


def _apply(
    rule: Rule, use: DatasetUse, period: Period, periods: PeriodTree, today: date
) -> tuple[ResolvedSource, ...] | str:
    """The sources that a rule gives, or why it does not apply."""
    condition = None if rule.when is None else _condition(rule)
    if condition is not None:
        value = evaluator(condition)(_row(use, period, today))
        if value is not True:
            outcome = "NULL" if value is None else "FALSE"
            return f"its condition {rule.when.value if rule.when else ''} is {outcome}"
    expanded = _expand(rule.data_level, period, periods)
    if isinstance(expanded, str):
        return expanded
    is_tied = rule.data_level != ANY_LEVEL or _asks_for_period(condition)
    return _merged(_source(rule, use, each, is_tied=is_tied) for each in expanded)


def _condition(rule: Rule) -> Expression:
    assert rule.when is not None  # noqa: S101 - the caller asks for rules that have one
    checked = check_condition(parse(rule.when), RULE_SCOPE, "in the when of a rule")
    if checked.expression is None:
        raise UserError(*checked.diagnostics)
    return checked.expression


def _row(use: DatasetUse, period: Period, today: date) -> Row:
    return Row(
        {
            "period": {
                "identifier": period.identifier,
                "level": period.level,
                "start_date": period.start_date,
                "end_date": period.end_date,
            },
            "dataset": {"id": use.dataset_id, "name": use.name},
            "table": {"name": use.table},
        },
        today,
    )


def _asks_for_period(condition: Expression | None) -> bool:
    return condition is not None and any(table == "period" for table, _ in columns_of(condition))


def _expand(level: str, period: Period, periods: PeriodTree) -> tuple[Period, ...] | str:
    """The periods whose data together is that of a period, where data is kept by level."""
    if level in {ANY_LEVEL, period.level}:
        return (period,)
    below = tuple(each for each in periods.descendants(period.identifier) if each.level == level)
    if below:
        return below
    if any(each.level == level for each in periods.ancestors(period.identifier)):
        return f"its data is kept by {level}, which is coarser than a {period.level}"
    return f'its data is kept by {level}, and the period "{period.identifier}" has no {level} below it'


def _source(rule: Rule, use: DatasetUse, period: Period, *, is_tied: bool) -> ResolvedSource:
    strategy = rule.strategy
    rules, corrections = FileRules(), None
    if isinstance(strategy, PathStrategy):
        template, format_ = strategy.path, strategy.file_format
        rules = rules_of(strategy)
        corrections = None if strategy.corrections is None else fill_template(strategy.corrections, use, period)
        options = {name: _option_text(value) for name, value in strategy.options.items() if value is not None}
    else:
        template, format_, options = strategy.table, "", {}
    names_period = bool(set(_PLACEHOLDER.findall(template)) - _NOT_OF_THE_PERIOD)
    return ResolvedSource(
        datasource_id=strategy.datasource_id,
        kind=strategy.type,
        location=fill_template(template, use, period),
        rule=rule.name,
        period=period.identifier,
        holds_one_period=is_tied or names_period,
        format=format_,
        options=options,
        rules=rules,
        corrections=corrections,
    )


def _merged(sources: Iterator[ResolvedSource]) -> tuple[ResolvedSource, ...]:
    """Each place once. A place that holds several periods is tied to none of them."""
    by_location = dict[str, ResolvedSource]()
    for source in sources:
        known = by_location.get(source.location)
        by_location[source.location] = source if known is None else replace(known, holds_one_period=False)
    return tuple(by_location.values())


def fill_template(template: str, use: DatasetUse, period: Period) -> str:
    """A path or table with its placeholders filled in; year, quarter and month are those of the first day."""
    start = period.start_date
    values = {
        "period": period.identifier,
        "table": use.table,
        "dataset": use.dataset_id,
        "level": period.level,
        "start_date": start.isoformat(),
        "end_date": period.end_date.isoformat(),
        "year": f"{start.year:04}",
        "quarter": f"Q{(start.month + 2) // 3}",
        "month": f"{start.month:02}",
    }
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def _option_text(value: object) -> str:
    """An option as Spark takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
