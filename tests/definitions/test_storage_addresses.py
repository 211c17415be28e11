"""Addresses of places: what they mean, and what is said about those that cannot be used."""

from pathlib import Path

import pytest

from clew.definitions.storage_addresses import BadAddress, RemoteAddress, is_remote, overlap, parse_address

HERE = Path("/workspace")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("out/reports", HERE / "out/reports"),
        ("/srv/clew", Path("/srv/clew")),
        ("data:2026/x", HERE / "data:2026/x"),
        ("file:///srv/a%20b", Path("/srv/a b")),
        ("file:/srv/clew", Path("/srv/clew")),
        ("s3://ledger/clew/", RemoteAddress("s3", "ledger", "clew")),
        ("s3a://ledger", RemoteAddress("s3", "ledger", "")),
        ("S3://ledger/A b", RemoteAddress("s3", "ledger", "A b")),
        ("gs://ledger/x/y", RemoteAddress("gs", "ledger", "x/y")),
        (
            "abfss://box@acme.dfs.core.windows.net/x",
            RemoteAddress("abfss", "box@acme.dfs.core.windows.net", "x"),
        ),
        ("hdfs://name-node:8020/clew", RemoteAddress("hdfs", "name-node:8020", "clew")),
        ("hdfs:///clew", RemoteAddress("hdfs", "", "clew")),
    ],
)
def test_an_address_is_read(text: str, expected: Path | RemoteAddress) -> None:
    assert parse_address(text, HERE) == expected
    assert is_remote(text) == isinstance(expected, RemoteAddress)


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("s4://ledger/clew", 'the scheme "s4", which Clew does not know', "s3://, gs://, abfss://, hdfs:// or file://"),
        ("https://host/x", 'the scheme "https"', "use a path"),
        ("s3n://ledger", 'the scheme "s3n"', "use a path"),
        ("s3:/ledger/clew", "not a valid address", "s3://BUCKET/FOLDER"),
        ("s3:///clew", "not a valid address", "s3://BUCKET/FOLDER"),
        ("s3://a/x", "not a valid address", "s3://BUCKET/FOLDER"),
        ("s3://ledger//clew", "an empty or a relative folder", "s3://BUCKET/FOLDER"),
        ("s3://ledger/../x", "an empty or a relative folder", "s3://BUCKET/FOLDER"),
        ("s3://ledger/x?endpoint_override=host", "has options in it", "remove"),
        ("gs://", "not a valid address", "gs://BUCKET/FOLDER"),
        ("abfss://box/x", "not a valid address", "abfss://CONTAINER@ACCOUNT"),
        ("file://host/x", "names another machine", "three slashes"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_what_to_write_instead(
    text: str, problem: str, hint: str
) -> None:
    with pytest.raises(BadAddress) as caught:
        parse_address(text, HERE)
    assert problem in str(caught.value)
    assert hint in caught.value.hint


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    for text in ("s3://AKIA:hunter2@ledger/clew", "s3://AKIA:hunt/er2@ledger/clew", "s9://AKIA:hunter2@ledger"):
        with pytest.raises(BadAddress) as caught:
            parse_address(text, HERE)
        assert "hunter2" not in f"{caught.value}{caught.value.hint}"
        assert "er2@" not in f"{caught.value}"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("s3://b-1/x", "s3a://b-1/x/y", True),
        ("s3://b-1", "s3a://b-1/y", True),
        ("s3://b-1/x", "s3a://b-1/xy", False),
        ("s3://b-1/x", "s3a://b-1/x", False),
        ("s3://b-1/x", "gs://b-1/x/y", False),
        ("a/b", "a/b/../b/c", True),
        ("a/b", "/workspace/a/b", False),
        ("a/b", "file:///workspace/a/b/c", True),
        ("a", "s3://b-1/a", False),
    ],
)
def test_places_inside_each_other_are_found(one: str, other: str, *, expected: bool) -> None:
    first, second = parse_address(one, HERE), parse_address(other, HERE)
    assert overlap(first, second) is overlap(second, first) is expected
