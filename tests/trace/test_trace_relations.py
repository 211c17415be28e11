"""Conditions that must find the same rows together, whatever they are: DuckDB and the evaluator share the work."""

from itertools import chain
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.trace.reader import RunTrace
from tests.tiers import examples
from tests.trace.random_projects import _CONDITIONS, projects, tables
from tests.trace.test_trace_reading import CONDITIONS, STYLES, records, written
from tests.trace.trace_writer import Style

_UNCERTAIN = [
    "amount / k > 2",
    "MOD(k, 3) = 1 OR share * 2 > 1",
    'UPPER(currency) = "SS" OR PROPER(currency) = "X"',
    'REGEX_MATCH(currency, "[A-Z]+")',
    "EOMONTH(day) > DATEADD(day, k)",
    'TRY_TO_INTEGER(currency) = k OR currency LIKE "E%"',
    "CASE WHEN flag THEN amount > 1 WHEN share > 0.5 THEN k > 2 END",
    "IF(flag, day, at) < TODAY()",
]
"""Conditions that DuckDB may not decide alone."""
_ANY = st.sampled_from([*CONDITIONS, *_CONDITIONS, *_UNCERTAIN])

Data = dict[str, list[dict[str, Any]]]


def found(trace: RunTrace, where: str | None, at: int) -> list[str]:
    return [row.row_id for row in trace.search(where, at=at, limit=1_000).rows]


def parts(condition: str) -> list[str]:
    return [f"({condition})", f"NOT ({condition})", f"({condition}) IS NULL"]


def moments(trace: RunTrace) -> set[int]:
    """Steps after which rows are looked for: what loading left, one step between, and the last one."""
    seqs = [0, *(step.seq for step in trace.plan.steps)]
    return {0, seqs[len(seqs) // 2], seqs[-1]}


@settings(max_examples=examples(8))
@given(projects(), tables(), STYLES, _ANY, _ANY)
def test_rows_are_found_where_a_condition_is_true_false_or_null_and_conditions_add_up(
    project: dict[str, Any], data: Data, style: Style, condition: str, other: str
) -> None:
    with written(project, data, style) as (_, _, trace):
        for seq in moments(trace):
            split = [found(trace, part, seq) for part in parts(condition)]
            assert sorted(chain(*split)) == found(trace, None, seq)
            for part, rows in zip(parts(condition), split, strict=True):
                assert trace.count(part, seq) in {None, len(rows)}
            first, second = set(split[0]), set(found(trace, other, seq))
            assert set(found(trace, f"({condition}) AND ({other})", seq)) == first & second
            assert set(found(trace, f"({condition}) OR ({other})", seq)) == first | second


@settings(max_examples=examples(5))
@given(projects(), tables(), STYLES, _ANY)
def test_records_of_a_step_are_split_like_its_rows(
    project: dict[str, Any], data: Data, style: Style, condition: str
) -> None:
    with written(project, data, style) as (_, _, trace):
        for seq in moments(trace) - {0}:
            split = [
                record.row_id for part in parts(condition) for record in trace.step_rows(seq, 1_000, where=part).records
            ]
            assert sorted(split) == sorted(records(trace, seq, 1_000))


@settings(max_examples=examples(4))
@given(projects(), tables(), STYLES, STYLES, _ANY)
def test_how_a_trace_is_written_does_not_matter_to_who_reads_it(
    project: dict[str, Any], data: Data, style: Style, other: Style, condition: str
) -> None:
    """Files, row groups and parts are others, and so are the ordinals of rows that are created."""
    with written(project, data, style) as (_, _, trace), written(project, data, other) as (_, _, again):
        for seq in moments(trace):
            states = [
                sorted(repr(row.state) for row in each.search(condition, at=seq, limit=1_000).rows)
                for each in (trace, again)
            ]
            assert states[0] == states[1]
