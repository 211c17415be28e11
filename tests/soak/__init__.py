"""A deployment under load for a time: nothing is lost, everything verifies, and nothing grows."""
