"""Which column of a file is which column of a dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.diagnostics import did_you_mean
from clew.model.dataset import PERIOD_COLUMN
from clew.plan.datasets import DatasetUse
from clew.spark.loading.problems import mismatch

_MOST_LISTED = 20
"""Columns in one message."""
_OTHER_DELIMITERS = {";": ";", "\t": "\\t", "|": "|"}
"""What separates columns where a comma does not, and how it is written."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file or table says about itself."""

    shown: str
    """Its name."""
    period: str | None
    """The period of all its rows, where the rule that led to it ties it to one."""


def positions_of(use: DatasetUse, names: Sequence[str], origin: Origin) -> Mapping[str, int]:
    """Where each column of a dataset stands among the columns of a file.

    Order does not matter, other columns are left alone, and upper and lower case are the same where that is not
    ambiguous. `_period` may be missing where all rows are of one period.
    """
    exact = {name: position for position, name in reversed(list(enumerate(names)))}
    folded = dict[str, list[int]]()
    for position, name in enumerate(names):
        folded.setdefault(name.casefold(), []).append(position)
    found, missing = dict[str, int](), list[str]()
    for column in use.columns:
        if names.count(column.name) > 1:
            raise mismatch(f'{origin.shown} has the column "{column.name}" twice', "remove or rename one of them")
        near = folded.get(column.name.casefold(), [])
        if column.name in exact:
            found[column.name] = exact[column.name]
        elif len(near) == 1:
            found[column.name] = near[0]
        elif column.name != PERIOD_COLUMN or origin.period is None:
            missing.append(column.name)
    if missing:
        raise _missing(use, missing, names, origin)
    return found


def _missing(use: DatasetUse, missing: Sequence[str], names: Sequence[str], origin: Origin) -> Exception:
    columns = f"column{'s' if len(missing) > 1 else ''} " + ", ".join(f'"{name}"' for name in missing[:_MOST_LISTED])
    more = f" and {len(missing) - _MOST_LISTED} more" if len(missing) > _MOST_LISTED else ""
    problem = f'{origin.shown} has no {columns}{more}, which the dataset "{use.name}" has'
    listed = ", ".join(names[:_MOST_LISTED]) + (", …" if len(names) > _MOST_LISTED else "")
    near = did_you_mean(missing[0], names) if len(missing) == 1 else None
    hint = near or f"its columns are {listed}"
    other = next((mark for mark in _OTHER_DELIMITERS if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        hint = f'its header is "{names[0]}": set the option `delimiter` of the rule to "{_OTHER_DELIMITERS[other]}"'
    elif list(missing) == [PERIOD_COLUMN]:
        hint = "add the column to the data, or put {period} into the path of the rule"
    return mismatch(problem, hint)
