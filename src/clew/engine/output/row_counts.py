"""How many rows the files of an output hold, whatever their format: what Spark says it wrote must be there."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO

import pyarrow.parquet as pq
from pyarrow import orc

_CHUNK = 1 << 20
_QUOTE = b'"'

Piece = AbstractContextManager[BinaryIO]
"""A file of an output, opened when it is entered."""


def rows_in_pieces(spark_format: str, options: Mapping[str, str], pieces: Iterable[Piece]) -> int | None:
    """Rows in all pieces; None where only a reader with the same options could tell."""
    match spark_format:
        case "parquet":
            return sum(_parquet_rows(piece) for piece in pieces)
        case "orc":
            return sum(_orc_rows(piece) for piece in pieces)
        case "json" if not _is_coded(options):
            return sum(_lines(piece) for piece in pieces)
        case "csv" if not _is_coded(options) and options.get("escape") == '"' and options.get("quote", '"') == '"':
            has_header = options.get("header") == "true"
            return sum(_records(piece, has_header=has_header) for piece in pieces)
        case _:
            return None


def _is_coded(options: Mapping[str, str]) -> bool:
    """Whether bytes are not lines of UTF-8."""
    return bool({"compression", "codec", "encoding", "charset", "lineSep"} & options.keys())


def _parquet_rows(piece: Piece) -> int:
    with piece as file:
        return int(pq.read_metadata(file).num_rows)


def _orc_rows(piece: Piece) -> int:
    with piece as file:
        return int(orc.ORCFile(file).nrows)


def _lines(piece: Piece) -> int:
    """Lines of JSON: a newline inside a value is written as an escape."""
    with piece as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(_CHUNK), b""))


def _records(piece: Piece, *, has_header: bool) -> int:
    """Records of CSV: newlines inside quotes do not count. Quotes inside quotes are doubled, so they cancel out."""
    records, is_quoted = 0, False
    with piece as file:
        for chunk in iter(lambda: file.read(_CHUNK), b""):
            for index, text in enumerate(chunk.split(_QUOTE)):
                if index:
                    is_quoted = not is_quoted
                if not is_quoted:
                    records += text.count(b"\n")
    return records - 1 if has_header and records else records
