"""Fixtures for tests on S3."""

from collections.abc import Iterator

import pytest

from tests.storage.s3_proxy import Proxy, s3_proxy
from tests.storage.s3_server import S3Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A server for all tests of a process; each takes its own bucket."""
    with s3_server() as server:
        yield server


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[Proxy]:
    """A proxy in front of the server."""
    with s3_proxy(s3.endpoint) as found:
        yield found
