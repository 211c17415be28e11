"""Why a value is what it is, and why a row is not where it was expected: read from plan, trace and pinned inputs."""
