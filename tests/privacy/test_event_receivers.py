"""Receivers of events see no more of the values of rows than the role that their bus is given."""

from pathlib import Path
from typing import Any

import pytest

import clew
from tests.bus.http_receiver import listening
from tests.privacy.clinic import MONTH, PERSONAL, PUBLIC, SECRET, failing_engine, write_clinic


def sent_by_a_run_that_fails(folder: Path, monkeypatch: pytest.MonkeyPatch, **bus: Any) -> dict[str, str]:
    """Everything that a webhook, a receiver of OpenLineage and a file get, by bus."""
    monkeypatch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
    monkeypatch.setattr("clew.api.starting.SparkExecutors", failing_engine())
    with listening("/hook") as hook, listening("/lineage") as lineage:
        buses = [
            {"id": "hook", "type": "webhook", "url": hook.url, **bus},
            {"id": "lineage", "type": "openlineage", "url": lineage.url, **bus},
            {"id": "file", "type": "file", "path": "events.jsonl", **bus},
        ]
        write_clinic(folder, {"bus": buses})
        run = clew.open(folder).run("care", MONTH)
        assert run.status == "FAILED"
        bodies = {
            name: "\n".join(body.decode() for _, _, body in receiver.requests)
            for name, receiver in (("hook", hook), ("lineage", lineage))
        }
    return {**bodies, "file": (folder / "events.jsonl").read_text(encoding="utf-8")}


def test_receivers_of_events_get_no_values_unless_their_bus_has_a_role_that_sees_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of the failure quotes a public value, which viewers do not see."""
    usual = sent_by_a_run_that_fails(tmp_path / "usual", monkeypatch)
    told = sent_by_a_run_that_fails(tmp_path / "told", monkeypatch, role="operator")
    for name, text in usual.items():
        assert "SchemaMismatch" in text or name == "lineage"
        assert ("FAIL" if name == "lineage" else "RunFailed") in text
        assert [each for each in (PUBLIC, PERSONAL, SECRET) if each in text] == [], name
    for name, text in told.items():
        assert PUBLIC in text, name
        assert [each for each in (PERSONAL, SECRET) if each in text] == [], name


def test_a_bus_with_an_unknown_role_is_refused(tmp_path: Path) -> None:
    write_clinic(tmp_path, {"bus": [{"id": "file", "type": "file", "path": "events.jsonl", "role": "nobody"}]})
    [problem] = clew.open(tmp_path).check().diagnostics
    assert (problem.code, "viewer" in str(problem.to_json())) == ("InvalidValue", True)
