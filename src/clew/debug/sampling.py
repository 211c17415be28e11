"""Samples that are the same for the same run, on any number of cores: the rows whose digests come first."""

import hashlib
from collections.abc import Iterable


def rank_sql(run_id: str, ordinal: str) -> str:
    """The rank of a row in SQL, the same in Spark and DuckDB. `run_id` is one of ours: letters, digits and dashes."""
    quoted = run_id.replace("'", "''")
    return f"md5(concat('{quoted}', ':', CAST({ordinal} AS STRING)))"


def rank(run_id: str, ordinal: int) -> str:
    """The rank of a row."""
    return hashlib.md5(f"{run_id}:{ordinal}".encode(), usedforsecurity=False).hexdigest()


def sampled(run_id: str, ordinals: Iterable[int], rows: int) -> list[int]:
    """The rows of a sample, in their order; all of them where there are no more."""
    return sorted(sorted(ordinals, key=lambda ordinal: (rank(run_id, ordinal), ordinal))[:rows])
