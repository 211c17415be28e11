"""A model of a run, and what checks it. docs/model.md explains both."""
