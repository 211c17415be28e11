"""Captures and postlude jobs of a workspace: asked for with a run, done after it, looked at later."""
