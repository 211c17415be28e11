"""All that a deployment keeps for tracing, in one place."""

from dataclasses import dataclass

from clew.tracelink.block_register import BlockRegister
from clew.tracelink.expansion import WindowExpander
from clew.tracelink.lineage_reader import LineageReader
from clew.tracelink.node_lease import LeasePolicy, NodeLeases
from clew.tracelink.pruning import TracePruner
from clew.tracelink.records import TraceWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLinkStores:
    """Node ids, blocks, frames, links and windows, each through the interface that its users need."""

    node_leases: NodeLeases
    lease_policy: LeasePolicy
    blocks: BlockRegister
    writer: TraceWriter
    reader: LineageReader
    expander: WindowExpander
    pruner: TracePruner
