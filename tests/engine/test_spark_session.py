import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from clew.diagnostics import UserError
from clew.engine.java import java_of_spark
from clew.engine.session import LANGUAGE_SETTINGS, SessionSettings, configuration, spark_session
from clew.engine.spark_versions import newest_java


def _java(home: Path, *, version: str | None, script: str = "exit 1") -> Path:
    """A folder that looks like an installed Java."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\n')
    return home


def test_a_second_call_gives_the_session_that_is_there(spark: SparkSession) -> None:
    again = spark_session(SessionSettings(master="local[1]"))
    assert again.conf.get("spark.app.id") == spark.conf.get("spark.app.id")


def test_the_settings_that_expressions_rest_on_are_set(spark: SparkSession) -> None:
    assert {name: spark.conf.get(name) for name in LANGUAGE_SETTINGS} == LANGUAGE_SETTINGS


def test_the_settings_that_expressions_rest_on_cannot_be_configured_away() -> None:
    settings = SessionSettings(config={"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"})
    found = configuration(settings)
    assert (found["spark.sql.ansi.enabled"], found["spark.sql.session.timeZone"]) == ("true", "UTC")


def test_configuration_comes_before_our_defaults() -> None:
    config = {"spark.driver.memory": "7g", "spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Dx=1"}
    found = configuration(SessionSettings(config=config, jars=("a.jar", "b.jar"), app_name="close"))
    assert (found["spark.driver.memory"], found["spark.ui.enabled"]) == ("7g", "true")
    assert found["spark.driver.extraJavaOptions"].endswith(" -Dx=1")
    assert (found["spark.jars"], found["spark.app.name"]) == ("a.jar,b.jar", "close")


def test_a_local_driver_collects_garbage_for_throughput_unless_a_collector_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options, ours = "spark.driver.extraJavaOptions", "-XX:+UseParallelGC"
    for variable in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.delenv(variable, raising=False)
    assert ours in configuration(SessionSettings(config={options: "-Dx=1"}))[options]
    assert ours not in configuration(SessionSettings(config={options: "-XX:+UseZGC"}))[options]
    assert ours not in configuration(SessionSettings(is_brief=True))[options]
    assert ours not in configuration(SessionSettings(master="spark://example:7077"))[options]
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseG1GC -Xlog:gc")
    assert ours not in configuration(SessionSettings())[options]


def test_a_local_driver_that_ends_soon_saves_preparations_for_long_work_unless_others_are_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options, collector, compilers = "spark.driver.extraJavaOptions", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel="
    for variable in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.delenv(variable, raising=False)
    found = configuration(SessionSettings(is_brief=True, config={options: "-Dx=1"}))[options]
    assert (found.count(collector), found.count(f"{compilers}1"), found.endswith(" -Dx=1")) == (1, 1, True)
    found = configuration(SessionSettings(is_brief=True, config={options: f"-XX:+UseZGC {compilers}4"}))[options]
    assert (collector in found, found.count(compilers), f"{compilers}1" in found) == (False, 1, False)
    assert compilers not in configuration(SessionSettings())[options]
    assert compilers not in configuration(SessionSettings(is_brief=True, master="spark://example:7077"))[options]
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:+UseG1GC")
    found = configuration(SessionSettings(is_brief=True))[options]
    assert (collector in found, f"{compilers}1" in found) == (False, True)


def test_a_local_master_stays_on_this_machine_and_shuffles_little() -> None:
    found = configuration(SessionSettings(master="local[3]"))
    assert (found["spark.driver.host"], found["spark.sql.shuffle.partitions"]) == ("127.0.0.1", "3")


def test_a_cluster_can_reach_the_driver() -> None:
    found = configuration(SessionSettings(master="spark://example:7077"))
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.sql.shuffle.partitions"} & set(found)


def test_a_query_that_fails_writes_nothing_by_itself(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PySparkException):
        spark.range(10).selectExpr("CAST(concat('x', id) AS BIGINT)").collect()
    with pytest.raises(PySparkException):
        spark.sql("SELECT nothing FROM nowhere").collect()
    assert capfd.readouterr() == ("", "")


@pytest.mark.spark
def test_the_installed_java_is_good_enough() -> None:
    java_of_spark()


def test_java_that_is_nowhere_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="there is no java on the path") as raised:
        java_of_spark()
    assert raised.value.code == "JavaMissing"


def test_a_home_without_java_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UserError, match="which has no bin/java"):
        java_of_spark()


@pytest.mark.parametrize(
    ("version", "script", "major"),
    [
        ("11.0.2", "exit 1", 11),
        ("1.8.0_292", "exit 1", 8),
        (None, """echo 'openjdk version "16.0.1" 2021-04-20' >&2""", 16),
    ],
)
def test_java_that_is_too_old_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, script: str, major: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "jdk", version=version, script=script)))
    with pytest.raises(UserError, match=f"Java {major} at .* is too old") as raised:
        java_of_spark()
    assert raised.value.code == "JavaMissing"


def test_java_that_the_hadoop_of_spark_cannot_run_on_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java 24 has removed what Hadoop before 3.5 needs; Spark would start, and fail at the first file."""
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "jdk", version="25.0.1")))
    if newest_java() is None:
        java_of_spark()
        return
    with pytest.raises(
        UserError, match=r"Java 25 at .* is too new: the installed Spark runs on Java 17 to 23"
    ) as raised:
        java_of_spark()
    assert (raised.value.code, raised.value.diagnostic.hint) == ("JavaMissing", "point JAVA_HOME to Java 17 or 21")


def test_java_that_is_new_enough_is_not_started_to_find_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "jdk", version="21.0.1", script="echo started >&2; exit 1")))
    java_of_spark()


def started_elsewhere(master: str, before: str = "", **variables: str) -> tuple[str, str]:
    """What a process prints in which a session is asked for, and which has none before."""
    program = (
        f"{before}\n"
        "from clew.diagnostics import UserError\n"
        "from clew.engine.session import SessionSettings, spark_session\n"
        f"try:\n    spark_session(SessionSettings(master={master!r}))\n"
        "except UserError as error:\n    print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ended.stdout, ended.stderr


def test_a_jvm_that_does_not_start_is_one_error_with_its_complaint(tmp_path: Path) -> None:
    home = _java(tmp_path / "jdk", version="21.0.1", script="echo 'no memory left' >&2; exit 1")
    said = started_elsewhere("local[1]", JAVA_HOME=str(home))
    assert said == ("SparkNotStarted: Spark did not start: no memory left\n", "")


def test_the_last_cause_that_java_gives_is_what_is_wrong(tmp_path: Path) -> None:
    """As on a machine that does not know its own name."""
    told = (
        'Exception in thread "main" java.lang.ExceptionInInitializerError',
        "\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)",
        "Caused by: java.net.UnknownHostException: box: box: Name or service not known",
        "\t... 10 more",
        "Caused by: java.net.UnknownHostException: box: Name or service not known",
        "\t... 17 more",
    )
    (tmp_path / "told").write_text("\n".join(told), encoding="utf-8")
    home = _java(tmp_path / "jdk", version="21.0.1", script=f"cat {tmp_path / 'told'} >&2; exit 1")
    problem = "java.net.UnknownHostException: box: Name or service not known"
    said = started_elsewhere("local[1]", JAVA_HOME=str(home))
    assert said == (f"SparkNotStarted: Spark did not start: {problem}\n", "")


def test_spark_connect_without_its_libraries_is_reported() -> None:
    said, complaint = started_elsewhere("sc://127.0.0.1:1", before="import sys; sys.modules['grpc'] = None")
    assert said.startswith("ConnectMissing: ")
    assert "grpc" in said
    assert complaint == ""
