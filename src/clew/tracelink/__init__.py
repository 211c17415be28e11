"""Trace ids, node ids, links between rows, the wire messages and their emitter."""
