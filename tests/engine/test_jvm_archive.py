"""Archives of Spark's classes: made by the JVM of a run, used by later ones, never in the way."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.engine.java import Java, java_of_spark
from clew.engine.jvm_archive import archive_for, archive_options

pytestmark = pytest.mark.spark

LONG_AGO = (0.0, 0.0)


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def java() -> Java:
    return java_of_spark()


def started(java: Java, options: str) -> "subprocess.CompletedProcess[str]":
    """A JVM with options, without those that the tests give to all others."""
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    command = [str(java.program), *options.split(), "-version"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_first_jvm_makes_the_archive_that_the_second_uses(java: Java, variables: dict[str, str]) -> None:
    path = archive_for(java, variables)
    assert path is not None
    first = started(java, archive_options(java, (), variables))
    assert (first.returncode, first.stdout) == (0, "")
    for made in path.parent.glob(f"{path.name}*"):
        os.utime(made, LONG_AGO)
    options = archive_options(java, (), variables)
    assert f"-XX:SharedArchiveFile={path}" in options
    assert path.is_file()
    second = started(java, f"{options} -Xshare:on")
    assert (second.returncode, second.stdout) == (0, "")


@pytest.mark.parametrize("content", [b"", b"not an archive" * 1000])
def test_a_damaged_archive_is_not_used_and_not_spoken_of(java: Java, variables: dict[str, str], content: bytes) -> None:
    path = archive_for(java, variables)
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    done = started(java, archive_options(java, (), variables))
    assert (done.returncode, done.stdout) == (0, "")
    assert "rror" not in done.stderr


def test_an_archive_that_is_being_written_is_left_alone(java: Java, variables: dict[str, str]) -> None:
    path = archive_for(java, variables)
    assert path is not None
    path.parent.mkdir(parents=True)
    begun = path.with_name(f"{path.name}.1")
    begun.write_bytes(b"half of it")
    archive_options(Java(java.program, 17), (), variables)
    assert begun.is_file()
    assert not path.exists()


def test_of_several_archives_one_is_kept(java: Java, variables: dict[str, str]) -> None:
    path = archive_for(java, variables)
    assert path is not None
    path.parent.mkdir(parents=True)
    for number in (1, 2, 3):
        made = path.with_name(f"{path.name}.{number}")
        made.write_bytes(b"all of it")
        os.utime(made, LONG_AGO)
    archive_options(Java(java.program, 17), (), variables)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("given", ["-Xshare:off", "-XX:SharedArchiveFile=/a.jsa", "-XX:ArchiveClassesAtExit=/a.jsa"])
def test_options_that_choose_an_archive_stay_alone(java: Java, variables: dict[str, str], given: str) -> None:
    assert archive_options(java, ("-Xmx1g", given), variables) == ""


@pytest.mark.parametrize("switch", [{"CLEW_JVM_ARCHIVE": "off"}, {"CLEW_CACHE_MB": "0"}, {"XDG_CACHE_HOME": ""}])
def test_archives_can_be_switched_off(java: Java, variables: dict[str, str], switch: dict[str, str]) -> None:
    assert archive_options(java, (), variables | switch) == ""


def test_a_folder_that_cannot_be_made_costs_time_and_nothing_else(java: Java, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert archive_options(java, (), {"XDG_CACHE_HOME": str(tmp_path / "file")}) == ""


def test_another_java_has_another_archive(java: Java, variables: dict[str, str], tmp_path: Path) -> None:
    other = tmp_path / "java"
    shutil.copyfile(java.program.resolve(), other)
    assert archive_for(Java(other, java.major), variables) != archive_for(java, variables)
