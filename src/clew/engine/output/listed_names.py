"""The list of files that an output has named after values: by their names alone nobody knows that an output wrote them.

It lies in the folder of the output, under a name that readers of folders pass over.
"""

import json
from collections.abc import Iterable

LISTED = "_FILES"
"""How the names of lists begin."""


def listing(run_id: str, seq: int, names: Iterable[str]) -> bytes:
    """The content of the list of a run and a step."""
    return json.dumps({"run": run_id, "step": seq, "files": sorted(names)}).encode()


def listed_in(content: bytes) -> frozenset[str]:
    """The names that a list has; none where it is not one."""
    try:
        names = json.loads(content)["files"]
    except (ValueError, KeyError, TypeError):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()
