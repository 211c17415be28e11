"""The routes under /api/v1. They return the same documents as commands with `--json`."""
