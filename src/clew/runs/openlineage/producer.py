"""Who says all this: every event and every facet carries it."""

from importlib.metadata import version


def producer() -> str:
    """This version of Clew as a URI."""
    return f"urn:clew:{version('clew')}"
