"""How adjustments are applied: an update and an append, as a fragment with the id of the dataset of adjustments.

They are ordinary operations, so adjusted rows have a trace and an explanation like all others.
"""

from collections.abc import Iterator, Sequence

from clew.definitions import Dataset, Fragment
from clew.definitions.adjustment_columns import (
    ACTION,
    ADD,
    ADJUSTED_BY,
    ADJUSTMENT,
    APPROVED_BY,
    CHANGE,
    MADE_BY,
    OLD,
)
from clew.definitions.adjustments import corrected_columns, key_columns, problems_of
from clew.definitions.data_nodes import node_of
from clew.definitions.shapes import Record
from clew.definitions.workspace import WorkspaceDefinitions
from clew.lang.text_form import name_text

_ALIAS = "adjusting"


def adjusting_fragments(workspace: WorkspaceDefinitions) -> Iterator[Fragment]:
    """A fragment for each dataset of adjustments that is right."""
    for adjustments in workspace.datasets:
        if adjustments.adjusts is None or any(problems_of(adjustments, adjustments.adjusts, workspace)):
            continue
        adjusted = workspace.dataset(adjustments.adjusts)
        if adjusted is not None:
            yield _fragment(adjustments, adjusted)


def _fragment(adjustments: Dataset, adjusted: Dataset) -> Fragment:
    corrected = corrected_columns(adjustments, adjusted)
    condition = " AND ".join(_matches(adjustments, adjusted, corrected))
    data = {
        "id": adjustments.id,
        "name": adjustments.name,
        "description": f"Corrections of {adjusted.name} that are in force and approved.",
        "operations": [
            {
                "seq": 1,
                "name": f"Adjust {adjusted.name}",
                "type": "update",
                "description": "Changes rows as adjustments say that are in force and approved.",
                "selector": f"{_theirs(ADJUSTMENT)} IS NOT NULL",
                "arguments": {
                    "joins": [{"alias": _ALIAS, "dataset_id": adjustments.id, "on": condition}],
                    "assignments": [
                        *({"column": name, "expression": _new_value(adjusted, name)} for name in corrected),
                        {"column": ADJUSTED_BY, "expression": _theirs(ADJUSTMENT)},
                    ],
                },
            },
            {
                "seq": 2,
                "name": f"Add rows to {adjusted.name}",
                "type": "append",
                "description": "Adds the rows of adjustments that are in force and approved.",
                "arguments": {
                    "source": {"dataset_id": adjustments.id},
                    "source_selector": f'{ACTION} = "{ADD}" AND {APPROVED_BY} <> {MADE_BY}',
                    "columns": {
                        **{name: name_text(name) for name in (*key_columns(adjusted), *corrected)},
                        ADJUSTED_BY: ADJUSTMENT,
                    },
                },
            },
        ],
    }
    return Record(Fragment).read(node_of(data, adjustments.file))


def _theirs(name: str) -> str:
    return f"{_ALIAS}.{name_text(name)}"


def _ours(adjusted: Dataset, name: str) -> str:
    return f"{name_text(adjusted.main_table.name)}.{name_text(name)}"


def _matches(adjustments: Dataset, adjusted: Dataset, corrected: Sequence[str]) -> Iterator[str]:
    """Who has made an adjustment cannot approve it; one that no one has approved matches nothing.

    A row is changed only if it still has the old values that the adjustment names.
    """
    for key in key_columns(adjusted):
        yield f"{_theirs(key)} = {_ours(adjusted, key)}"
    yield f'{_theirs(ACTION)} = "{CHANGE}"'
    yield f"{_theirs(APPROVED_BY)} <> {_theirs(MADE_BY)}"
    given = {column.name for column in adjustments.main_table.columns}
    for name in corrected:
        if f"{OLD}{name}" in given:
            old = _theirs(f"{OLD}{name}")
            yield f"({old} IS NULL OR {old} = {_ours(adjusted, name)})"


def _new_value(adjusted: Dataset, name: str) -> str:
    return f"COALESCE({_theirs(name)}, {_ours(adjusted, name)})"
