"""The clinic, opened once for all tests that only read it."""

from collections.abc import Iterator

import pytest

from tests.privacy.clinic import Clinic, opened_clinic


@pytest.fixture(scope="session")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A workspace whose columns are full of canaries, with its runs, served."""
    with opened_clinic(tmp_path_factory.mktemp("clinic") / "clinic") as found:
        yield found
