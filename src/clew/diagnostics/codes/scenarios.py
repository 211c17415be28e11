"""What can be wrong with running a scenario without Spark, or with cutting one out of a run."""

from clew.diagnostics.diagnostic import Code, Nature

NOT_QUICK = Code(
    "NotQuick",
    "this scenario needs Spark: {reason}",
    "`clew test --quick` computes scenarios without Spark. It refuses those for which it could not be certain to do "
    "what Spark does.",
    "run it without --quick",
)
CUT_NEEDS_GROUP = Code(
    "CutNeedsGroup",
    "{problem}",
    "A summary row is reproduced only together with the rows that it sums up.",
    "add --group to cut them too, or cut one of the rows behind it",
    Nature.USAGE,
)
CUT_TOO_LARGE = Code(
    "CutTooLarge",
    "{problem}",
    "A scenario is for people to read, and has its rows inline. The rows behind the summary are too many for that.",
    "cut a summary of fewer rows, or one of the rows behind it",
    Nature.USAGE,
)
CUT_NOT_REPRODUCED = Code(
    "CutNotReproduced",
    "{problem}",
    "The scenario was computed before it was written, and did not give what the run has stored.",
    "run the project as it is now and cut from that run, or cut a row that does not depend on what is named here",
)

SCENARIO_CODES = (NOT_QUICK, CUT_NEEDS_GROUP, CUT_TOO_LARGE, CUT_NOT_REPRODUCED)
