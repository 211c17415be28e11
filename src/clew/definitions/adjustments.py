"""Datasets of adjustments: manual corrections of another dataset, with who made and who approved them, and why."""

from collections.abc import Iterator

from clew.definitions.adjustment_columns import ABOUT, OLD
from clew.definitions.dataset import PERIOD_COLUMN, PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN, Dataset, TemporalMode
from clew.definitions.workspace import WorkspaceDefinitions
from clew.diagnostics import Diagnostic, did_you_mean
from clew.diagnostics.codes.workspace import DUPLICATE_ID, INVALID_VALUE, UNKNOWN_DATASET
from clew.lang.types import STRING

_OF_PERIODS = frozenset({PERIOD_COLUMN, PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN})
"""Columns that do not say which row is meant: adjustments have their own days."""


def key_columns(adjusted: Dataset) -> tuple[str, ...]:
    """The columns by which an adjustment finds its row."""
    return tuple(name for name in adjusted.natural_key if name not in _OF_PERIODS)


def corrected_columns(adjustments: Dataset, adjusted: Dataset) -> tuple[str, ...]:
    """The columns that adjustments can change, in the order of the adjusted dataset."""
    given = {column.name for column in adjustments.main_table.columns}
    names = (column.name for column in adjusted.main_table.columns)
    return tuple(name for name in names if name in given and name not in {*key_columns(adjusted), *ABOUT, *_OF_PERIODS})


def problems_of_adjustments(workspace: WorkspaceDefinitions) -> Iterator[Diagnostic]:
    """What is wrong with datasets of adjustments, each compared with the dataset that it adjusts."""
    for adjustments in workspace.datasets:
        if adjustments.adjusts is not None:
            yield from problems_of(adjustments, adjustments.adjusts, workspace)


def problems_of(adjustments: Dataset, name: str, workspace: WorkspaceDefinitions) -> Iterator[Diagnostic]:
    """What is wrong with one of them."""
    place = adjustments.place("adjusts")
    same = workspace.fragment(adjustments.id)
    if same is not None:
        first = str(same.place("id"))
        yield DUPLICATE_ID.at(adjustments.place("id"), kind="fragment", id=adjustments.id, first=first)
    adjusted = workspace.dataset(name)
    if adjusted is None:
        if ("dataset", name) not in workspace.broken:
            known = [each.id for each in workspace.datasets if each.adjusts is None]
            yield UNKNOWN_DATASET.at(place, name=name, hint=did_you_mean(name, known))
        return
    has_key = bool(key_columns(adjusted))
    if not has_key or adjusted.adjusts is not None:
        why = "is one of adjustments" if has_key else "has no natural_key by which rows are found"
        hint = "name the data itself" if has_key else "add the columns that together identify a row"
        yield INVALID_VALUE.at(place, problem=f'the dataset "{name}" cannot be adjusted: it {why}', hint=hint)
        return
    if adjustments.main_table.temporal_mode is not TemporalMode.BITEMPORAL:
        problem = "adjustments are in force from one day until another"
        hint = f"set temporal_mode: bitemporal, which adds {PERIOD_FROM_COLUMN} and {PERIOD_TO_COLUMN}"
        yield INVALID_VALUE.at(adjustments.main_table.place("temporal_mode"), problem=problem, hint=hint)
    yield from _problems_of_columns(adjustments, adjusted)


def _problems_of_columns(adjustments: Dataset, adjusted: Dataset) -> Iterator[Diagnostic]:
    given = {column.name: column for column in adjustments.main_table.columns}
    theirs = {column.name: column.type for column in adjusted.main_table.columns}
    for name, what in ABOUT.items():
        if name not in given:
            hint = f"add {{name: {name}, type: string}}"
            problem = f"adjustments need the column {name}: {what}"
            yield INVALID_VALUE.at(adjustments.main_table.place("columns"), problem=problem, hint=hint)
    for key in key_columns(adjusted):
        if key not in given:
            problem = f'adjustments need the column {key}, which identifies rows of "{adjusted.id}"'
            hint = f"add {{name: {key}, type: {theirs.get(key, STRING)}}}"
            yield INVALID_VALUE.at(adjustments.main_table.place("columns"), problem=problem, hint=hint)
    for name, column in given.items():
        if name in _OF_PERIODS:
            continue
        if name in ABOUT:
            expected, about = STRING, "adjustments"
        elif name in theirs or name.removeprefix(OLD) in theirs:
            expected, about = theirs.get(name) or theirs[name.removeprefix(OLD)], f'"{adjusted.id}"'
        else:
            problem = f'the column "{name}" is neither one of "{adjusted.id}" nor an old value of one'
            hint = did_you_mean(name, [*theirs, *ABOUT]) or "remove it, or correct its name"
            yield INVALID_VALUE.at(column.place("name"), problem=problem, hint=hint)
            continue
        if column.type != expected:
            problem = f'"{name}" of {about} is {expected}, and {column.type} here'
            yield INVALID_VALUE.at(column.place("type"), problem=problem, hint=f"write type: {expected}")
    if not corrected_columns(adjustments, adjusted):
        problem = f'no column of "{adjusted.id}" can be changed: adjustments have its key only'
        hint = "add the columns whose values adjustments give"
        yield INVALID_VALUE.at(adjustments.main_table.place("columns"), problem=problem, hint=hint)
