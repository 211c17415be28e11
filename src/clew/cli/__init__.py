"""The command line: commands and their tables. Thin."""
