"""The routes under /api/v1: the same documents that commands give with `--json`."""
