"""The version of the schema that this Clew reads and writes."""

NEWEST = 10
"""That of the last step in `migrations`. It stands here so that a reader can compare it without loading the steps."""
