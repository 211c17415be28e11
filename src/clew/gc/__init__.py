"""Letting go of what nobody needs any more: runs that are old, what they registered, and what dead workers left."""
