"""What errors of Spark say about a store, as Hadoop's file system for S3 puts them."""

import pytest

from clew.storage.store_errors import store_problem

CALL = "An error occurred while calling o64.parquet.\n: "
STACK = """
\tat software.amazon.awssdk.core.internal.http.pipeline.stages.TimeoutExceptionHandlingStage.execute(Stage.java:77)
\tat software.amazon.awssdk.core.internal.retry.ThrottlingStage.execute(ThrottlingStage.java:1)
\t... 23 more
"""
"""Names in it say nothing about what went wrong."""
HEAD = "org.apache.hadoop.fs.s3a.{kind}: getFileStatus on s3a://ledger/x: software.amazon.awssdk.services.s3.model."
SERVICE = "(Service: S3, Status Code: {status}, Request ID: null)"
WRITE = (
    "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to s3a://ledger/w. "
    "SQLSTATE: 58030{stack}Caused by: org.apache.hadoop.fs.s3a.{kind}: Writing Object on w/part-0.parquet: "
    "software.amazon.awssdk.services.s3.model.S3Exception: "
)


@pytest.mark.parametrize(
    ("text", "says", "is_transient"),
    [
        (HEAD + "S3Exception: Bad Request " + SERVICE.format(status=400), "they may have expired", False),
        (WRITE + "The provided token has expired. " + SERVICE.format(status=400), "have expired", False),
        (HEAD + "S3Exception: Service Unavailable " + SERVICE.format(status=503), "is overloaded or fails", True),
        (WRITE + "Please reduce your request rate. " + SERVICE.format(status=503), "is overloaded or fails", True),
        (HEAD + "NoSuchBucketException: " + SERVICE.format(status=404), "s3://ledger does not exist", False),
        (HEAD + "S3Exception: null " + SERVICE.format(status=403), "no permission in s3://ledger", False),
        (WRITE + "RequestTimeTooSkewed " + SERVICE.format(status=403), "the clock of this machine is off", True),
        (WRITE + "Unable to execute HTTP request: Read timed out", "does not answer in time", True),
        (WRITE + "Premature end of Content-Length delimited message body", "broke the connection", True),
    ],
)
def test_the_store_is_blamed_for_what_it_did(text: str, says: str, is_transient: bool) -> None:
    found = store_problem(CALL + text.format(kind="AWSServiceIOException", stack=STACK) + STACK)
    assert found is not None
    assert found.code == "StorageUnavailable"
    assert "s3://ledger" in found.diagnostic.message
    assert says in found.diagnostic.message
    assert (type(found).__name__ == "TransientFailure") == is_transient


@pytest.mark.parametrize(
    "text",
    [
        "java.io.FileNotFoundException: No such file or directory: s3a://ledger/data/gone.csv",
        "org.apache.spark.SparkException: [DIVIDE_BY_ZERO] while writing rows to s3a://ledger/w",
        "java.io.IOException: cannot read /data/orders.csv: Connection reset",
    ],
)
def test_a_store_is_not_blamed_for_anything_else(text: str) -> None:
    assert store_problem(CALL + text + STACK) is None
