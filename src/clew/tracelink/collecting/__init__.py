"""The collector: datagrams of many producers in, batches for the store out."""

from clew.tracelink.collecting.collector import Collector
from clew.tracelink.collecting.counts import CollectorCounts
from clew.tracelink.collecting.settings import CollectorSettings, bind_address, stages_of

__all__ = ["Collector", "CollectorCounts", "CollectorSettings", "bind_address", "stages_of"]
