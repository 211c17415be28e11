"""What happens to a capture that is too large."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.captures.freezing import Fitting, InFlight, Reason, Ticket, below, exceeded, fit, fit_job
from clew.captures.policy import Limits
from clew.captures.requests import CaptureRequest, KeptColumn
from clew.definitions import CaptureMode
from tests.captures.capture_plans import policy

TICKET = Ticket(
    run_id="r",
    breakpoint="p::main::x",
    seq=1,
    plan_digest="d",
    parts=(),
    skipped=(),
    rows=1000,
    estimated_bytes=100_000,
    frozen_at=None,
)
REQUEST = CaptureRequest(
    breakpoint="p::main::x",
    seq=1,
    mode=CaptureMode.FULL_RAW,
    limits=Limits(max_bytes=1_000_000, max_rows=10_000, max_columns=10),
    sample_rows=100,
    columns=tuple(KeptColumn(f"c{n}") for n in range(5)),
    ttl_days=1,
)
ROOMY = policy()


def fitted(
    request: CaptureRequest = REQUEST, ticket: Ticket = TICKET, in_flight: InFlight | None = None, **limits: int
) -> Fitting:
    tight = replace(request, limits=replace(request.limits, **limits))
    return fit(tight, ticket, all_columns=5, policy=ROOMY, in_flight=in_flight or InFlight())


def test_what_fits_is_kept_as_it_was_asked_for() -> None:
    found = fitted()
    assert (found.mode, found.steps, found.reserved_bytes) == (CaptureMode.FULL_RAW, (), 100_000)


def test_the_ladder_goes_from_full_over_sample_and_statistics_to_nothing() -> None:
    assert [below(mode) for mode in CaptureMode] == [
        None,
        CaptureMode.STATS,
        CaptureMode.STATS,
        CaptureMode.SAMPLE_RAW,
        CaptureMode.SAMPLE_VIEW,
    ]


def test_too_many_rows_become_a_sample() -> None:
    found = fitted(max_rows=500)
    assert found.mode is CaptureMode.SAMPLE_RAW
    assert [(step.mode, step.reason, step.limit, step.found) for step in found.steps] == [
        (CaptureMode.FULL_RAW, Reason.MAX_ROWS, 500, 1000)
    ]


def test_a_sample_is_no_larger_than_the_most_rows() -> None:
    assert fitted(max_rows=7).sample_rows == 7


def test_too_many_bytes_become_a_sample_and_then_statistics() -> None:
    assert fitted(max_bytes=20_000).mode is CaptureMode.SAMPLE_RAW
    found = fitted(max_bytes=500)
    assert found.mode is CaptureMode.STATS
    assert [step.reason for step in found.steps] == [Reason.MAX_BYTES, Reason.MAX_BYTES]


def test_too_many_columns_leave_nothing() -> None:
    found = fitted(max_columns=4)
    assert (found.mode, found.drop_reason, len(found.steps)) == (None, Reason.MAX_COLUMNS, 3)


def test_too_many_bytes_in_flight_become_statistics() -> None:
    found = fitted(in_flight=InFlight(bytes=ROOMY.max_inflight_bytes))
    assert found.mode is CaptureMode.STATS
    assert {step.reason for step in found.steps} == {Reason.INFLIGHT_BYTES}


def test_too_many_jobs_in_flight_leave_nothing() -> None:
    found = fitted(in_flight=InFlight(jobs=ROOMY.max_inflight_jobs))
    assert (found.mode, found.drop_reason) == (None, Reason.INFLIGHT_JOBS)
    assert fit_job(10, ROOMY, InFlight(jobs=ROOMY.max_inflight_jobs)).drop_reason is Reason.INFLIGHT_JOBS
    assert fit_job(10, ROOMY, InFlight(bytes=ROOMY.max_inflight_bytes)).drop_reason is Reason.INFLIGHT_BYTES
    assert fit_job(10, ROOMY, InFlight(jobs=ROOMY.max_inflight_jobs - 1)).drop_reason is None


@pytest.mark.parametrize(
    ("mode", "rows", "size", "reason"),
    [
        (CaptureMode.FULL_RAW, 10_001, 10, Reason.MAX_ROWS),
        (CaptureMode.FULL_VIEW, 1, 1_000_001, Reason.MAX_BYTES),
        (CaptureMode.SAMPLE_RAW, 1, 1_000_001, Reason.MAX_BYTES),
        (CaptureMode.STATS, 10**9, 10**9, None),
        (CaptureMode.FULL_RAW, 10_000, 1_000_000, None),
    ],
)
def test_what_was_really_written_is_looked_at_again(mode: CaptureMode, rows: int, size: int, reason: Reason) -> None:
    found = exceeded(mode, REQUEST, rows=rows, size=size)
    assert (found.reason if found else None) == reason


@given(
    mode=st.sampled_from(CaptureMode),
    rows=st.one_of(st.none(), st.integers(0, 10**7)),
    size=st.integers(0, 10**10),
    columns=st.integers(1, 20),
    limits=st.tuples(st.integers(1, 10**7), st.integers(1, 10**9), st.integers(1, 20)),
    flying=st.tuples(st.integers(0, 2 * 10**9), st.integers(0, 12)),
)
def test_the_same_request_always_comes_down_to_the_same_and_keeps_all_limits(
    mode: CaptureMode,
    rows: int | None,
    size: int,
    columns: int,
    limits: tuple[int, int, int],
    flying: tuple[int, int],
) -> None:
    request = replace(
        REQUEST,
        mode=mode,
        columns=tuple(KeptColumn(f"c{n}") for n in range(columns)),
        limits=Limits(max_bytes=limits[1], max_rows=limits[0], max_columns=limits[2]),
    )
    ticket, in_flight = replace(TICKET, rows=rows, estimated_bytes=size), InFlight(*flying)
    found = fit(request, ticket, all_columns=columns, policy=ROOMY, in_flight=in_flight)
    assert found == fit(request, ticket, all_columns=columns, policy=ROOMY, in_flight=in_flight)
    tried = [step.mode for step in found.steps] + ([found.mode] if found.mode else [])
    assert tried[0] is mode
    assert all(below(first) is second for first, second in pairwise(tried) if first)
    assert all(step.found > step.limit or step.reason is Reason.INFLIGHT_JOBS for step in found.steps)
    if found.mode is None:
        assert found.drop_reason is not None
    else:
        assert found.reserved_bytes <= request.limits.max_bytes
        assert in_flight.bytes + found.reserved_bytes <= ROOMY.max_inflight_bytes
        assert columns <= request.limits.max_columns
        assert found.sample_rows <= request.limits.max_rows
