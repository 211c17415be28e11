"""One module for each command.

A command imports its dependencies when it runs, so that `clew --help` does not load the compiler and `clew check`
does not load the tables.
"""
