"""`python -m clew.cli` is `clew`."""

from clew.cli.main import main

main()
