"""The expression language: grammar, types, functions, checking, and evaluation in plain Python."""
