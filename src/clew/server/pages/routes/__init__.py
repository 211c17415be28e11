"""The routes for browsers, by topic."""

from clew.server.pages.routes import (
    captures,
    changes,
    entry,
    filters,
    lineage,
    operations,
    outputs,
    rows,
    runs,
    workspace,
)

__all__ = ["captures", "changes", "entry", "filters", "lineage", "operations", "outputs", "rows", "runs", "workspace"]
