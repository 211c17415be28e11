from dataclasses import replace
from datetime import date

import pytest

from clew.definitions import PathStrategy, Period, PeriodTree, Resolver, Rule, TableStrategy
from clew.definitions.calendar import Calendar, Generate, periods_of
from clew.definitions.expression_text import ExpressionText
from clew.diagnostics import UserError
from clew.lang.types import STRING
from clew.plan.datasets import DatasetColumn, DatasetUse
from clew.plan.resolution import ResolvedSource, resolve

TODAY = date(2026, 7, 1)
PERIODS = PeriodTree(
    periods_of(Calendar(id="fiscal", name="fiscal", generate=Generate(first_year=2026, last_year=2026)))
)
USE = DatasetUse("journal", "journal lines", "transactions", "period", (DatasetColumn("id", STRING),))


def period(identifier: str) -> Period:
    found = PERIODS.period(identifier)
    assert found is not None
    return found


def rule(path: str = "{period}.csv", *, name: str = "rule", when: str | None = None, level: str = "any") -> Rule:
    strategy = PathStrategy(type="path", datasource_id="files", path=path)
    return Rule(name=name, when=ExpressionText(when) if when else None, data_level=level, strategy=strategy)


def sources(identifier: str, *rules: Rule) -> tuple[ResolvedSource, ...]:
    return resolve(USE, Resolver(id="r", name="r", rules=rules), period(identifier), PERIODS, today=TODAY)


def locations(identifier: str, *rules: Rule) -> list[str]:
    return [source.location for source in sources(identifier, *rules)]


def problem(identifier: str, *rules: Rule) -> str:
    with pytest.raises(UserError) as caught:
        sources(identifier, *rules)
    assert caught.value.code == "SourceUnavailable"
    return caught.value.diagnostic.message


def test_the_first_rule_that_applies_counts() -> None:
    early = rule("early.csv", name="early", when='period.start_date < DATE("2026-03-01")')
    late = rule("late.csv", name="late")
    assert locations("2026-01", early, late) == ["early.csv"]
    assert locations("2026-03", early, late) == ["late.csv"]


def test_conditions_see_period_dataset_and_table() -> None:
    seen = (
        'period.identifier = "2026-01" AND period.level = "month" AND period.end_date = DATE("2026-01-31") '
        'AND dataset.id = "journal" AND dataset.name = "journal lines" AND table.name = "transactions"'
    )
    assert locations("2026-01", rule(when=seen)) == ["2026-01.csv"]


def test_a_condition_that_is_null_does_not_apply() -> None:
    assert "is NULL" in problem("2026-01", rule(when='period.identifier = NULL OR table.name = "other"'))


def test_today_is_the_day_of_the_run() -> None:
    assert locations("2026-01", rule(when='TODAY() = DATE("2026-07-01")')) == ["2026-01.csv"]


@pytest.mark.parametrize(
    ("identifier", "level", "expected"),
    [
        ("2026-01", "any", ["2026-01"]),
        ("2026", "any", ["2026"]),
        ("2026-01", "month", ["2026-01"]),
        ("2026-Q2", "month", ["2026-04", "2026-05", "2026-06"]),
        ("2026", "quarter", ["2026-Q1", "2026-Q2", "2026-Q3", "2026-Q4"]),
        ("2026", "month", [f"2026-{month:02}" for month in range(1, 13)]),
    ],
)
def test_a_period_is_expanded_to_the_level_of_the_data(identifier: str, level: str, expected: list[str]) -> None:
    found = sources(identifier, rule("{period}", level=level))
    assert [source.location for source in found] == expected
    assert [source.period for source in found] == expected


def test_data_of_a_coarser_level_does_not_serve_a_finer_period() -> None:
    yearly, monthly = rule("y{period}", name="yearly", level="year"), rule("m{period}", level="month")
    assert locations("2026-01", yearly, monthly) == ["m2026-01"]
    assert "coarser than a month" in problem("2026-01", yearly)


def test_a_level_that_the_calendar_does_not_have_below_the_period_does_not_apply() -> None:
    assert "has no day below it" in problem("2026-01", rule(level="day"))


def test_all_placeholders_are_filled() -> None:
    template = "{dataset}/{table}/{level}/{period}/{year}-{quarter}-{month}/{start_date}_{end_date}"
    assert locations("2026-05", rule(template)) == [
        "journal/transactions/month/2026-05/2026-Q2-05/2026-05-01_2026-05-31"
    ]


def test_no_rule_names_every_rule_and_why() -> None:
    rules = (
        rule(name="first", when='table.name = "other"'),
        rule(name="second", level="year"),
        rule(name="third", when='period.start_date > DATE("2027-01-01")'),
    )
    text = problem("2026-01", *rules)
    assert '"journal"' in text
    assert '"2026-01"' in text
    assert all(f'"{name}": ' in text for name in ("first", "second", "third"))


def test_a_long_list_of_rules_is_told_rule_by_rule() -> None:
    rules = tuple(rule(name=f"rule {number}", when='table.name = "another table"') for number in range(40))
    with pytest.raises(UserError) as caught:
        sources("2026-01", *rules)
    told = [diagnostic.message for diagnostic in caught.value.diagnostics[1:]]
    assert all(f'"rule {number}"' in told[number] for number in range(40))


def test_a_place_that_serves_several_periods_is_read_once() -> None:
    found = sources("2026-Q1", rule("all.csv", level="month"))
    assert [source.location for source in found] == ["all.csv"]
    assert not found[0].holds_one_period


@pytest.mark.parametrize(
    ("one", "holds_one_period"),
    [
        (rule("all.csv"), False),
        (rule("{table}/{dataset}.csv"), False),
        (rule("{period}.csv"), True),
        (rule("{year}/{month}.csv"), True),
        (rule("all.csv", level="month"), True),
        (rule("all.csv", when='period.identifier = "2026-01"'), True),
        (rule("all.csv", when='table.name = "transactions"'), False),
    ],
)
def test_a_place_belongs_to_a_period_only_where_the_rule_says_so(one: Rule, holds_one_period: bool) -> None:
    assert sources("2026-01", one)[0].holds_one_period is holds_one_period


def test_a_path_brings_format_and_options_as_text() -> None:
    strategy = PathStrategy(
        type="path", datasource_id="files", path="x.txt", format="csv", options={"header": False, "delimiter": ";"}
    )
    found = sources("2026-01", replace(rule(), strategy=strategy))[0]
    assert (found.kind, found.datasource_id, found.format) == ("path", "files", "csv")
    assert found.options == {"header": "false", "delimiter": ";"}


def test_a_table_is_a_source_too() -> None:
    strategy = TableStrategy(type="table", datasource_id="warehouse", table="{table}_{year}")
    found = sources("2026-01", replace(rule(name="db"), strategy=strategy))
    assert found == (ResolvedSource("warehouse", "table", "transactions_2026", "db", "2026-01", holds_one_period=True),)
