"""Databases: schema, migrations, and the implementations of the store protocols."""

from clew.store.opening import StoreOptions, open_run_stores

__all__ = ["StoreOptions", "open_run_stores"]
