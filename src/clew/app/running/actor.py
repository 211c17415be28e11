"""Who is at the keyboard."""

import getpass


def actor_name() -> str:
    """The name of the user, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
