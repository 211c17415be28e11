"""Makes `python -m clew.cli` work like `clew`."""

from clew.cli.main import main

main()
