"""Environments as runs take them."""

from pathlib import Path

import pytest
from sqlalchemy import make_url

from clew.api.workspace import Workspace
from clew.runs.environment import RunEnvironment
from clew.runs.limits import DeliveryPolicy, LeasePolicy, QueuePolicy


def test_a_password_is_put_into_the_address_of_the_store_whatever_its_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = "{state_store: 'postgresql://clerk@ledger-db/clew', state_store_credential_ref: 'secret://env/STORE'}"
    (tmp_path / "clew.yaml").write_text(f"name: w\nenvironments:\n  dev: {settings}\n", encoding="utf-8")
    monkeypatch.setenv("STORE", "p@ss/w:rd%?#")
    environment = Workspace(tmp_path).run_environment
    address = make_url(environment.store_url(environment.secrets()))
    assert (address.username, address.password) == ("clerk", "p@ss/w:rd%?#")
    assert (address.host, address.database) == ("ledger-db", "clew")


def environment_with(tmp_path: Path, settings: str) -> RunEnvironment:
    (tmp_path / "clew.yaml").write_text(f"name: w\nenvironments:\n  dev: {settings}\n", encoding="utf-8")
    return Workspace(tmp_path).run_environment


def test_the_limits_of_runs_can_be_set_per_environment(tmp_path: Path) -> None:
    environment = environment_with(
        tmp_path,
        "{queue: {max_queued: 7}, retry: {max_attempts: 2, logical_attempts: 4}, lease: {ttl_seconds: 90}, "
        "signals: {max_bytes: 100, max_per_minute: 3}, store_limits: {fail_open_for: []}, "
        "delivery: {max_attempts: 6, base_delay_ms: 50, max_delay_ms: 2000, finish_seconds: 1}}",
    )
    assert environment.queue_policy().max_queued == 7
    assert (environment.retry_policy().engine_attempts, environment.retry_policy().logical_attempts) == (2, 4)
    assert environment.lease_policy().ttl_s == 90
    limits = environment.store_limits()
    assert (limits.max_signal_bytes, limits.max_signals_per_minute, limits.fail_open_for) == (100, 3, frozenset())
    delivery = environment.delivery_policy()
    assert (delivery.attempts, delivery.first_delay_s, delivery.longest_delay_s) == (6, 0.05, 2.0)
    assert delivery.finish_s == 1


def test_without_settings_the_limits_are_those_of_the_specification(tmp_path: Path) -> None:
    environment = environment_with(tmp_path, "{}")
    assert environment.queue_policy() == QueuePolicy()
    assert environment.lease_policy() == LeasePolicy()
    assert environment.delivery_policy() == DeliveryPolicy()
    limits = environment.store_limits()
    assert (limits.max_signal_bytes, limits.max_signals_per_minute) == (65_536, 60)
    assert set(limits.fail_open_for) == {"StepStarted"}
    assert set(limits.never_fail_open) == {"StepCompleted", "StepFailed"}
    assert environment.retry_policy().logical_attempts == 1


@pytest.mark.parametrize(
    "settings",
    [
        "{queue: {max_queued: 0}}",
        "{retry: {logical_attempts: 0}}",
        "{lease: {ttl_seconds: 4}}",
        "{lease: {ttl_seconds: soon}}",
        "{signals: {max_per_minute: 0}}",
        "{signals: {max_bytes: 1000000}}",
        "{delivery: {max_attempts: 0}}",
        "{delivery: {finish_seconds: 6000}}",
        "{delivery: {attempts: 3}}",
        "{store_limits: {fail_open_for: [StepCompleted]}}",
        "{store_limits: {fail_open_for: [Nonsense]}}",
    ],
)
def test_limits_that_make_no_sense_are_reported_by_the_check(tmp_path: Path, settings: str) -> None:
    (tmp_path / "clew.yaml").write_text(f"name: w\nenvironments:\n  dev: {settings}\n", encoding="utf-8")
    (problem,) = Workspace(tmp_path).check().diagnostics
    assert problem.code in {"InvalidValue", "UnknownKey", "WrongType"}
    assert problem.span is not None
    assert problem.span.file == "clew.yaml"
