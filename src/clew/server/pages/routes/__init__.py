"""The routes for browsers, by topic."""

from clew.server.pages.routes import captures, entry, lineage, operations, rows, runs, workspace

__all__ = ["captures", "entry", "lineage", "operations", "rows", "runs", "workspace"]
