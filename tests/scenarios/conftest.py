"""The command line, for tests of scenarios."""

from tests.cli.conftest import clew

__all__ = ["clew"]
