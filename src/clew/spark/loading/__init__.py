"""Loading: from the places of a dataset's data to pinned, checked rows."""

from clew.plan.tables import TableAddress, TableReader
from clew.spark.loading.managed import pin_managed
from clew.spark.loading.periods import period_condition
from clew.spark.loading.pinning import pin
from clew.spark.loading.request import Pinned, PinRequest

__all__ = ["PinRequest", "Pinned", "TableAddress", "TableReader", "period_condition", "pin", "pin_managed"]
