"""The command line: a thin layer of commands and tables."""
