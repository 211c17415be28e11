"""One module for each command.

A command imports what it works with when it runs, not before: `clew --help` should not wait for the compiler, nor
`clew check` for tables.
"""
