"""What can be wrong with a question about two runs, or about a run that was not made."""

from clew.diagnostics.diagnostic import Code, Nature

DIFFERENT_PROJECTS = Code(
    "DifferentProjects",
    "{problem}",
    "Runs are compared within one project: rows of different projects have different columns and meanings.",
    "`clew runs` shows the runs of each project",
    Nature.USAGE,
)
DIFFERENT_KEYS = Code(
    "DifferentKeys",
    "{problem}",
    "Rows of two runs are matched by the natural key of their dataset, which must be the same in both.",
    "name the columns that identify a row in both runs with --key",
    Nature.USAGE,
)
INVALID_COMPARISON = Code(
    "InvalidComparison",
    "{problem}",
    "The question about two runs contradicts itself, or asks for something that the rows do not have.",
    "`clew compare --help` shows what can be asked",
    Nature.USAGE,
)
NOT_RECOMPUTABLE = Code(
    "NotRecomputable",
    "{problem}",
    "The causes of a difference are found by calculating the value again with one thing exchanged at a time. That is "
    "impossible here: the result would depend on row ids, there are too many rows, or a mixture of both runs fails. An "
    "edited project cannot be tried on a run that did not read what the project needs.",
    "narrow the condition, or compare runs that differ in less",
)
RECOMPUTATION_DIFFERS = Code(
    "RecomputationDiffers",
    "{problem}",
    "The value of a run, calculated again from its rows and steps, is not the one that was stored, so that no cause "
    "can be told exactly.",
    "`clew verify --deep RUN` shows which values differ; report this with its result",
)
INVALID_SUPPOSITION = Code(
    "InvalidSupposition",
    "{problem}",
    "What is supposed to be different in a run names rows of a dataset that the run read, or a column that one of its "
    "updates sets, and reaches at least one row.",
    "`clew what-if --help` shows how to write it",
    Nature.USAGE,
)

CHANGE_CODES = (
    DIFFERENT_PROJECTS,
    DIFFERENT_KEYS,
    INVALID_COMPARISON,
    NOT_RECOMPUTABLE,
    RECOMPUTATION_DIFFERS,
    INVALID_SUPPOSITION,
)
