"""Lineage by trace ids: over the rows of all runs and the frames that processes outside have sent."""
