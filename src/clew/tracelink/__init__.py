"""Trace ids, node ids, links between rows, the wire messages and their emitter."""

from clew.tracelink.blocks import TraceIdBlock
from clew.tracelink.clock import ClockMs, monotonic_epoch_clock
from clew.tracelink.frame_descriptor import FrameDescriptor, FrameView, read_frame, write_frame
from clew.tracelink.ids import TraceIdGenerator
from clew.tracelink.layout import MAX_NODE_ID, UNTRACED, TraceIdParts, decompose
from clew.tracelink.leased_ids import LeasedTraceIds, this_process
from clew.tracelink.link_set import LinkSetView, TraceLinkSet, read_link_set, write_link_set
from clew.tracelink.node_lease import LeaseEnd, LeasePolicy, NodeHolder, NodeLease, NodeLeases
from clew.tracelink.sbe import CodecError
from clew.tracelink.stream import SkipCounts, read_batch, read_stream

__all__ = [
    "MAX_NODE_ID",
    "UNTRACED",
    "ClockMs",
    "CodecError",
    "FrameDescriptor",
    "FrameView",
    "LeaseEnd",
    "LeasePolicy",
    "LeasedTraceIds",
    "LinkSetView",
    "NodeHolder",
    "NodeLease",
    "NodeLeases",
    "SkipCounts",
    "TraceIdBlock",
    "TraceIdGenerator",
    "TraceIdParts",
    "TraceLinkSet",
    "decompose",
    "monotonic_epoch_clock",
    "read_batch",
    "read_frame",
    "read_link_set",
    "read_stream",
    "this_process",
    "write_frame",
    "write_link_set",
]
