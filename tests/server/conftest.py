import sys
from pathlib import Path

for folder in ("app", "cli", "explain", "store", "trace"):
    sys.path.insert(0, str(Path(__file__).parent.parent / folder))

from server_fixtures import *  # noqa: E402, F403
from store_fixtures import postgres, postgres_url  # noqa: E402, F401
