import sys
from pathlib import Path

for name in ("app", "spark", "trace"):
    sys.path.insert(0, str(Path(__file__).parent.parent / name))
