"""A capture as a run carries it: everything decided that the environment and the plan decide."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.definitions import CaptureMode, Mask
from clew.events.codec import decode, encode

PARAMETER = "captures"
"""The key in the parameters of a run request."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a capture may be."""

    max_bytes: int
    max_rows: int
    max_columns: int


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column of the rows that a capture keeps, perhaps masked."""

    name: str
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class OmittedColumn:
    """A column that a capture does not keep, and why."""

    column: str
    reason: str
    """EXCLUDED, PERSONAL, SECRET or LARGE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """What is to be kept of the rows at a breakpoint."""

    breakpoint: str
    """Its qualified name."""
    seq: int
    mode: CaptureMode
    limits: Limits
    sample_rows: int
    columns: tuple[KeptColumn, ...]
    """In the order of the plan, system columns among them."""
    left_out: tuple[OmittedColumn, ...] = ()
    named: tuple[str, ...] = ()
    """Columns that were asked for by their very name, which nothing but privacy may leave out."""
    ttl_days: int
    store: str | None = None
    """A sink of the environment, None for its own storage."""
    shows_personal: bool = False
    """Whether a personal column is kept as it is. Reading such a capture takes one of the roles that may ask for it."""

    def to_json(self) -> dict[str, object]:
        """For the parameters of a run."""
        document: dict[str, object] = encode(self)
        return document

    @classmethod
    def from_json(cls, document: object) -> "CaptureRequest":
        """The request that `to_json` gave."""
        return decode(cls, document)


def requests_in(parameters: Mapping[str, object]) -> tuple[CaptureRequest, ...]:
    """The captures that a run request carries."""
    listed = parameters.get(PARAMETER)
    return tuple(map(CaptureRequest.from_json, listed)) if isinstance(listed, list | tuple) else ()
