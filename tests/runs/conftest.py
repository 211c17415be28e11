import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "store"))

from store_fixtures import *  # noqa: F403
