"""The workspace object and the use cases: where the parts are wired together."""
