"""Trace ids, node ids, links between rows, the wire messages and their emitter."""

from clew.tracelink.block_register import BlockRegister, PublishedBlock
from clew.tracelink.blocks import TraceIdBlock
from clew.tracelink.clock import ClockMs, monotonic_epoch_clock
from clew.tracelink.collecting import Collector, CollectorCounts, CollectorSettings, bind_address, stages_of
from clew.tracelink.dot import to_dot
from clew.tracelink.emitter import COLLECTOR_ADDRESS, Emitter, EmitterCounts
from clew.tracelink.expansion import Expansion, WindowExpander
from clew.tracelink.frame_descriptor import FrameDescriptor, FrameFields, FrameView, read_frame, write_frame
from clew.tracelink.ids import TraceIdGenerator
from clew.tracelink.layout import MAX_NODE_ID, UNTRACED, TraceIdParts, decompose
from clew.tracelink.leased_ids import LeasedTraceIds, this_process
from clew.tracelink.lineage import Direction, LineageGraph, LineageNode, walk
from clew.tracelink.lineage_answer import Lineage, ask_lineage
from clew.tracelink.lineage_reader import LineageReader, UnitedLineage
from clew.tracelink.lineage_tree import render_tree
from clew.tracelink.link_set import LinkSetFields, LinkSetView, TraceLinkSet, read_link_set, write_link_set
from clew.tracelink.links import Link, LinkReader, UnitedLinks
from clew.tracelink.node_lease import ConfiguredNode, LeaseEnd, LeasePolicy, NodeHolder, NodeLease, NodeLeases
from clew.tracelink.places import TracedFrame, TracePlace
from clew.tracelink.records import ArtifactRange, Bounds, FrameRow, TraceBatch, TraceWindow, TraceWriter
from clew.tracelink.sbe import CodecError
from clew.tracelink.stores import TraceLinkStores
from clew.tracelink.stream import SkipCounts, read_batch, read_stream
from clew.tracelink.traced_stream import TracedStream, TraceIds
from clew.tracelink.window_log import WindowLog

__all__ = [
    "COLLECTOR_ADDRESS",
    "MAX_NODE_ID",
    "UNTRACED",
    "ArtifactRange",
    "BlockRegister",
    "Bounds",
    "ClockMs",
    "CodecError",
    "Collector",
    "CollectorCounts",
    "CollectorSettings",
    "ConfiguredNode",
    "Direction",
    "Emitter",
    "EmitterCounts",
    "Expansion",
    "FrameDescriptor",
    "FrameFields",
    "FrameRow",
    "FrameView",
    "LeaseEnd",
    "LeasePolicy",
    "LeasedTraceIds",
    "Lineage",
    "LineageGraph",
    "LineageNode",
    "LineageReader",
    "Link",
    "LinkReader",
    "LinkSetFields",
    "LinkSetView",
    "NodeHolder",
    "NodeLease",
    "NodeLeases",
    "PublishedBlock",
    "SkipCounts",
    "TraceBatch",
    "TraceIdBlock",
    "TraceIdGenerator",
    "TraceIdParts",
    "TraceIds",
    "TraceLinkSet",
    "TraceLinkStores",
    "TracePlace",
    "TraceWindow",
    "TraceWriter",
    "TracedFrame",
    "TracedStream",
    "UnitedLineage",
    "UnitedLinks",
    "WindowExpander",
    "WindowLog",
    "ask_lineage",
    "bind_address",
    "decompose",
    "monotonic_epoch_clock",
    "read_batch",
    "read_frame",
    "read_link_set",
    "read_stream",
    "render_tree",
    "stages_of",
    "this_process",
    "to_dot",
    "walk",
    "write_frame",
    "write_link_set",
]
