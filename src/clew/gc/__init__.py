"""Garbage collection: deletes old runs, the dataset versions that no project needs, and what dead workers left."""
