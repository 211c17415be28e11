"""`clew doctor`: what is wrong is found, named and remedied, and nothing is left behind."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Answer, Clew
from tests.storage.s3_server import KEYS, REGION, S3Server


def configured(folder: Path, **settings: Any) -> Path:
    """The sample with other settings in its default environment."""
    path = folder / "clew.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content["environments"][content["default_environment"]] |= settings
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


def findings(answer: Answer) -> dict[str, list[tuple[str, str, str | None]]]:
    """By subject: health, what was found, and the remedy."""
    found = dict[str, list[tuple[str, str, str | None]]]()
    for each in answer.json["findings"]:
        found.setdefault(each["subject"], []).append((each["health"], each["found"], each["remedy"]))
    return found


def bad(answer: Answer) -> dict[str, list[str]]:
    """What has failed, by subject."""
    return {
        subject: texts
        for subject, each in findings(answer).items()
        if (texts := [text for health, text, _ in each if health == "failed"])
    }


def files_in(folder: Path) -> dict[str, float]:
    return {str(path.relative_to(folder)): path.stat().st_mtime for path in folder.rglob("*")}


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that is never started."""
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


def test_a_fresh_sample_is_well_and_stays_as_it_is(clew: Clew, sample: Path, java: Path) -> None:
    before = files_in(sample)
    answer = clew("doctor", "--json", cwd=sample)
    assert (answer.code, answer.json["is_well"], answer.err) == (0, True, "")
    found = findings(answer)
    assert list(found) == [
        "python", "spark", "java", "jars", "workspace", "secrets", "storage", "database", "permissions",
    ]  # fmt: skip
    assert {health for each in found.values() for health, _, _ in each} == {"ok"}
    assert found["python"][0][1].endswith(sys.executable)
    assert found["java"] == [("ok", f"21, {java}/bin/java", None)]
    assert files_in(sample) == before


def test_text_has_a_line_for_each_finding_and_one_for_each_remedy(clew: Clew, sample: Path, java: Path) -> None:
    configured(sample, spark={"jars": ["nowhere.jar"]})
    answer = clew("doctor", cwd=sample)
    assert answer.code == 1
    [line, remedy] = [line for line in answer.out.splitlines() if "nowhere" in line or "spark.jars" in line]
    assert line.split()[:2] == ["failed", "jars"]
    assert remedy.strip() == "correct the path under `spark.jars` or in the datasource"


def test_outside_of_a_workspace_the_machine_is_looked_at(clew: Clew, tmp_path: Path, java: Path) -> None:
    answer = clew("doctor", "--json", cwd=tmp_path)
    assert (answer.code, answer.json["workspace"]) == (0, None)
    assert findings(answer)["workspace"][0][0] == "skipped"


def test_an_environment_that_does_not_exist_fails(clew: Clew, sample: Path, java: Path) -> None:
    answer = clew("doctor", "--env", "nothing", "--json", cwd=sample)
    assert answer.code == 1
    assert "nothing" in bad(answer)["workspace"][0]


def test_a_java_that_is_too_old_is_told_with_its_code(clew: Clew, sample: Path, java: Path) -> None:
    (java / "release").write_text('JAVA_VERSION="11.0.2"\n')
    answer = clew("doctor", "--json", cwd=sample)
    [finding] = [each for each in answer.json["findings"] if each["subject"] == "java"]
    assert (answer.code, finding["health"], finding["code"]) == (1, "failed", "JavaMissing")
    assert "install Java 17" in finding["remedy"]


def test_spark_connect_needs_no_java(clew: Clew, sample: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    answer = clew("doctor", "--json", cwd=configured(sample, spark={"master": "sc://example:15002"}))
    assert answer.code == 0
    assert findings(answer)["java"][0][0] == "skipped"
    assert findings(answer)["spark connect"][0][0] == "ok"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("delta-spark_3.5_2.13-3.2.0.jar", "is built for Spark 3.5"),
        ("iceberg-spark-runtime-3.5_2.12-1.6.0.jar", "is built for Spark 3.5"),
        ("some-connector_2.12-1.0.jar", "is built for Scala 2.12"),
        ("hadoop-aws-2.7.4.jar", "is part of Hadoop 2.7.4"),
    ],
)
def test_a_jar_for_another_spark_is_told(clew: Clew, sample: Path, java: Path, name: str, reason: str) -> None:
    (sample / name).write_bytes(b"")
    answer = clew("doctor", "--json", cwd=configured(sample, spark={"jars": [name]}))
    assert answer.code == 1
    [problem] = bad(answer)["jars"]
    assert name in problem
    assert reason in problem


def test_jars_at_addresses_are_left_to_spark(clew: Clew, sample: Path, java: Path) -> None:
    answer = clew("doctor", "--json", cwd=configured(sample, spark={"jars": ["local:///opt/driver.jar"]}))
    assert (answer.code, findings(answer)["jars"]) == (0, [("ok", "driver.jar", None)])


def test_errors_in_files_are_counted(clew: Clew, sample: Path, java: Path) -> None:
    (sample / "projects" / "wrong.yaml").write_text("nothing: here\n", encoding="utf-8")
    answer = clew("doctor", "--json", cwd=sample)
    assert answer.code == 1
    assert findings(answer)["workspace"][0][2] == "run `clew check`"


def test_a_secret_that_is_not_there_is_named(clew: Clew, sample: Path, java: Path) -> None:
    store = {"state_store": "postgresql://127.0.0.1:1/clew", "state_store_credential_ref": "secret://env/NO_SUCH_KEY"}
    answer = clew("doctor", "--json", cwd=configured(sample, **store))
    assert answer.code == 1
    assert "NO_SUCH_KEY" in bad(answer)["secrets"][0]


def test_a_database_that_does_not_answer_is_told(clew: Clew, sample: Path, java: Path) -> None:
    answer = clew("doctor", "--json", cwd=configured(sample, state_store="postgresql://127.0.0.1:1/clew"))
    assert answer.code == 1
    [finding] = [each for each in answer.json["findings"] if each["subject"] == "database"]
    assert (finding["health"], finding["code"]) == ("failed", "StoreUnavailable")


def test_a_state_store_that_is_not_one_is_told(clew: Clew, sample: Path, java: Path) -> None:
    (sample / ".clew").mkdir(mode=0o700)
    (sample / ".clew" / "state.db").write_bytes(b"this is no database" * 100)
    answer = clew("doctor", "--json", cwd=sample)
    assert answer.code == 1
    assert "not a database" in bad(answer)["database"][0]


def test_storage_that_cannot_be_made_is_told(clew: Clew, sample: Path, java: Path) -> None:
    (sample / "a-file").write_bytes(b"")
    answer = clew("doctor", "--json", cwd=configured(sample, storage_root="a-file/storage"))
    assert answer.code == 1
    assert bad(answer)["storage"] == [f"{sample}/a-file/storage cannot be created"]


def test_a_private_folder_that_is_open_to_others_is_a_warning(clew: Clew, sample: Path, java: Path) -> None:
    (sample / ".clew").mkdir()
    (sample / ".clew").chmod(0o755)
    answer = clew("doctor", "--json", cwd=sample)
    assert answer.code == 0
    assert ("warning", f"{sample}/.clew is open to other users", f"run: chmod -R go= {sample}/.clew") in findings(
        answer
    )["permissions"]


def test_an_object_store_is_written_to_read_and_left_empty(
    clew: Clew, sample: Path, java: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_KEYS", KEYS)
    root = s3.storage("doctor")
    credentials = {"credential_ref": "secret://env/LEDGER_KEYS", "path_style": True}
    store = {"endpoint": s3.endpoint, "region": REGION, **credentials}
    configured(sample, storage_root=root.address, object_store=store)
    answer = clew("doctor", "--json", cwd=sample)
    found = findings(answer)
    assert answer.code == 0, answer.out
    assert ("ok", f"{root.address} can be used", None) in found["storage"]
    assert found["clock"][0][0] == "ok"
    assert found["jars"][-1][0] == "warning"
    assert list(root.files("")) == []


@pytest.mark.parametrize(
    ("late", "health", "code", "said"), [(300, "failed", 1, "s behind"), (-10, "warning", 0, "s ahead of")]
)
def test_a_clock_that_is_not_that_of_the_store_is_told(
    late: int,
    health: str,
    code: int,
    said: str,
    clew: Clew,
    sample: Path,
    java: Path,
    s3: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LEDGER_KEYS", KEYS)
    monkeypatch.setattr("clew.api.doctor.time", SimpleNamespace(time=lambda: time.time() - late))
    root = s3.storage("clock")
    credentials = {"credential_ref": "secret://env/LEDGER_KEYS", "path_style": True}
    store = {"endpoint": s3.endpoint, "region": REGION, **credentials}
    answer = clew("doctor", "--json", cwd=configured(sample, storage_root=root.address, object_store=store))
    [(found, text, remedy)] = findings(answer)["clock"]
    assert (answer.code, found, remedy) == (code, health, "synchronise the clock of this machine (NTP)")
    assert f"{said} {root.address}" in text


@pytest.mark.spark
@pytest.mark.slow
def test_spark_is_started_if_asked_for(clew: Clew, sample: Path) -> None:
    command = [sys.executable, "-m", "clew.cli", "doctor", "--start", "--json"]
    done = subprocess.run(command, cwd=sample, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = json.loads(done.stdout)["findings"][-1]
    assert (last["subject"], last["health"]) == ("spark session", "ok")
