"""Loading: from the places of a dataset's data to pinned, checked rows."""

from clew.spark.loading.managed import pin_managed
from clew.spark.loading.periods import period_condition
from clew.spark.loading.pinning import pin
from clew.spark.loading.request import Pinned, PinRequest
from clew.spark.loading.tables import TableAddress, TableReader

__all__ = ["PinRequest", "Pinned", "TableAddress", "TableReader", "period_condition", "pin", "pin_managed"]
