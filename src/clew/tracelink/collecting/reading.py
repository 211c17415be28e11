"""Datagrams read into what the store keeps of them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from clew.tracelink.collecting.buffer import Received
from clew.tracelink.collecting.counts import CollectorCounts
from clew.tracelink.frame_descriptor import FrameFields
from clew.tracelink.layout import UNTRACED
from clew.tracelink.link_set import LinkSetFields
from clew.tracelink.records import TraceBatch
from clew.tracelink.stream import SkipCounts, read_batch

_EACH_ITS_OWN: Final[Mapping[int, int]] = MappingProxyType({})


def read_datagrams(
    received: Iterable[Received], counts: CollectorCounts, stages: Mapping[int, int] = _EACH_ITS_OWN
) -> TraceBatch:
    """The frames and links of datagrams. A frame without a time of its own has that of its arrival.

    Messages name streams and no stages: a stream is that of the stage with the same number, unless `stages` says which
    one publishes it.
    """
    batch, skips = TraceBatch(), SkipCounts()
    frames: list[FrameFields] = []
    link_sets: list[LinkSetFields] = []
    keep_frame, keep_links, stage_of = batch.frames.append, batch.links.extend, stages.get
    for datagram, received_ns in received:
        read_batch(datagram, frames, link_sets, skips)
        for stream_id, epoch, seq, timestamp_ns, _, trace_id, _ in frames:
            if trace_id == UNTRACED:
                counts.untraced += 1
            else:
                t_ns = received_ns if timestamp_ns is None else timestamp_ns
                keep_frame((stream_id, epoch, seq, stage_of(stream_id, stream_id), t_ns, trace_id, 0))
        for _, _, _, trace_id, parents, _ in link_sets:
            keep_links([(trace_id, parent) for parent in parents])
        counts.frames += len(frames)
        counts.link_sets += len(link_sets)
        frames.clear()
        link_sets.clear()
    _count_skips(skips, counts)
    return batch


def count_messages(datagram: bytes, counts: CollectorCounts) -> int:
    """Count the messages of a datagram that is not kept."""
    frames: list[FrameFields] = []
    link_sets: list[LinkSetFields] = []
    skips = SkipCounts()
    read_batch(datagram, frames, link_sets, skips)
    counts.frames += len(frames)
    counts.link_sets += len(link_sets)
    _count_skips(skips, counts)
    return len(frames) + len(link_sets)


def _count_skips(skips: SkipCounts, counts: CollectorCounts) -> None:
    counts.bad += skips.malformed
    counts.unknown_schema += skips.unknown_schemas + skips.unknown_templates
