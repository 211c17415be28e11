"""Databases: schema, migrations, and the implementations of the store protocols."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.store.state_store import StoreOptions, open_run_stores

__all__ = ["StoreOptions", "open_run_stores"]


def __getattr__(name: str) -> object:
    """Imported on first use, so that reading a state store does not wait for what writes to it."""
    if name not in __all__:
        raise AttributeError(f"module 'clew.store' has no attribute '{name}'")
    from clew.store import state_store  # noqa: PLC0415

    return getattr(state_store, name)
