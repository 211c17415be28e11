"""The file to give to `spark-submit`, followed by a command: `run gl-close --period 2026-01 -w /work/ledger`.

In cluster mode only this file is sent to the machine of the driver, where Clew is installed.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python looks for modules beside a script first; those of this folder are not meant to be found by their last name.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent]
    from clew.cli.main import main

    main()
