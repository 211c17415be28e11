"""State stores in files that this process may read and not write: on a read-only disk, or owned by somebody else."""

import os
from pathlib import Path


def is_read_only(path: Path) -> bool:
    """Whether a state store exists that cannot be written. Its folder counts: SQLite keeps its log beside the file."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def read_only_uri(path: Path) -> str:
    """The address by which SQLite reads such a file.

    With a log beside it that has not been folded in, the log must be read too, which needs the index beside it. Without
    one, the file is all there is; SQLite must be told so, or it would try to make the index.
    """
    log = path.with_name(f"{path.name}-wal")
    has_log = log.is_file() and log.stat().st_size > 0
    return f"{path.absolute().as_uri()}?mode=ro" + ("" if has_log else "&immutable=1")
