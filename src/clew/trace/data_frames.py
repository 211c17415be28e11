"""Arrow tables as data frames, without losing digits."""

# ruff: noqa: PLC0415 - libraries for tables are imported when somebody asks for one

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa


def data_frame(table: "pa.Table") -> "pd.DataFrame":
    """A table as a data frame; pandas must be installed.

    Whole numbers stay whole where some are missing: as floating-point numbers, which pandas would make of them, long
    ones are not what they were.
    """
    import pandas as pd
    import pyarrow as pa

    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            frame[name] = column.to_pandas(types_mapper=lambda _type: pd.Int64Dtype())
    return frame
