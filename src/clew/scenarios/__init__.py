"""Scenarios: the tests that users write, run on Spark in one session, touching nothing of the workspace."""
