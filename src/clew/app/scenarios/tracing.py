"""Expected changes against the trace."""
