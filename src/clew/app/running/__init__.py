"""Runs of a workspace: the state store, the queue, the engine, and the reading of what runs left behind."""
