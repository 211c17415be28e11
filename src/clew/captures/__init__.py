"""Captures of rows at breakpoints, and the jobs that run on them after a run: all of it that needs neither Spark nor a
database server."""
