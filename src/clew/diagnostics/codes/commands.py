"""What can be wrong with a command itself rather than with what it works on."""

from clew.diagnostics.diagnostic import Code, Nature

WRONG_USAGE = Code(
    "WrongUsage",
    "{problem}",
    "A command was given an option or an argument that it does not have, or lacks one that it needs.",
    "`clew --help` lists the commands",
    Nature.USAGE,
)
UNWRITABLE_OUTPUT = Code(
    "UnwritableOutput",
    "the answer cannot be written: {reason}",
    "Standard output leads to a place that takes no more, such as a full disk.",
    "make room, or send the output somewhere else",
)
INTERNAL_ERROR = Code(
    "InternalError",
    "this is a bug in Clew: {problem}",
    "Something happened that nobody thought of. It is not your fault.",
    "run the command again with --verbose, and report what it prints",
)

COMMAND_CODES = (WRONG_USAGE, UNWRITABLE_OUTPUT, INTERNAL_ERROR)
