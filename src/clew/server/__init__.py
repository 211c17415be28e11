"""The HTTP server: the API, access control, and the pages. All content comes from the readers of `api`."""
