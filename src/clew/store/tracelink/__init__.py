"""TraceLink in a database: node ids, blocks, frames, links, windows, artifacts, and the questions about them."""

from clew.store.tracelink.opening import open_trace_link_stores, trace_link_stores

__all__ = ["open_trace_link_stores", "trace_link_stores"]
