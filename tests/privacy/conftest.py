"""The clinic, opened once for the tests of a file that only read it: while it is open, runs go to its own engine."""

from collections.abc import Iterator

import pytest

from tests.privacy.clinic import Clinic, opened_clinic


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A workspace whose columns are full of canaries, with its runs, served."""
    with opened_clinic(tmp_path_factory.mktemp("clinic") / "clinic") as found:
        yield found
