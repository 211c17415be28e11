"""What an error of Spark says, for people."""

import re

_CALLING = "An error occurred while calling "
"""What comes before an error of the Java side that PySpark has no name for."""
_CODED = re.compile(r"^.*?\[[A-Z][A-Z0-9_.]+\] ")
_AROUND = re.compile(r"^: |\b(?:[a-z][a-z0-9_]*\.)+[A-Z]\w*(?:Exception|Error): | SQLSTATE: \w+.*$")


def reason_of(error: Exception) -> str:
    """What an error of Spark says, in one line: without class names, codes and the stack of the Java side."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith(_CALLING)]
    coded = next((line for line in lines if _CODED.search(line)), lines[0] if lines else type(error).__name__)
    return _AROUND.sub("", _CODED.sub("", coded)).strip()[:300]
