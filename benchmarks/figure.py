"""What a benchmark reports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, and the bound that it is to keep where there is one."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
