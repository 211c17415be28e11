"""Protection of the routes: header and host checks, size limits and timeouts."""
