"""Whether a text is the id of a row: what pages ask before they link or shorten it."""

from clew.storage.row_identity import RowIds


def is_row_id(text: str) -> bool:
    """Whether it is the id of a row of some run."""
    return RowIds.is_row_id(text)


def is_row_of(run_id: str, text: str) -> bool:
    """Whether it is the id of a row of a run."""
    return RowIds(run_id).ordinal(text) is not None
