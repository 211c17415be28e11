"""What simulations share."""

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.simulated_store import DatabaseFile, database_file
from tests.simulation.substitutes import installed


@pytest.fixture(scope="module")
def file() -> Iterator[DatabaseFile]:
    """The substitutes, and a database for all seeds."""
    logging.disable(logging.CRITICAL)
    with database_file() as file, installed():
        yield file
    logging.disable(logging.NOTSET)
