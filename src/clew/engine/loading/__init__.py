"""Loading: from the places of a dataset's data to pinned, checked rows."""

from clew.engine.loading.periods import period_condition
from clew.engine.loading.pinning import pin, pin_managed
from clew.engine.loading.sources import Pinned, PinRequest
from clew.plan.datasets import TableAddress, TableReader

__all__ = ["PinRequest", "Pinned", "TableAddress", "TableReader", "period_condition", "pin", "pin_managed"]
