"""What can be wrong with a command itself."""

from clew.diagnostics.diagnostic import Code, Nature

WRONG_USAGE = Code(
    "WrongUsage",
    "{problem}",
    "The command has an unknown or missing option or argument.",
    "`clew --help` lists the commands",
    Nature.USAGE,
)
UNWRITABLE_OUTPUT = Code(
    "UnwritableOutput",
    "cannot write the output: {reason}",
    "Standard output cannot be written, for example because the disk is full.",
    "free up space, or redirect the output",
)
FILE_SYSTEM_FAILED = Code(
    "FileSystemFailed",
    "cannot use {place}: {reason}",
    "The operating system refused to read or write something: a disk is full, fails, or can only be read.",
    "free up space, or check the disk and the permissions there; then try again",
)
INTERNAL_ERROR = Code(
    "InternalError",
    "this is a bug in Clew: {problem}",
    "Clew ran into an error that it does not handle. It is not your fault.",
    "run the command again with --verbose and report the output",
)

COMMAND_LOST = Code(
    "CommandLost",
    "clew ended with exit code {code} and without an answer: {complaint}",
    "An orchestrator has started Clew as a program, and the program was killed or could not start.",
    "see why in the log of that machine; a negative code is the signal that ended it, and -9 is often a lack of memory",
)

COMMAND_CODES = (WRONG_USAGE, UNWRITABLE_OUTPUT, FILE_SYSTEM_FAILED, INTERNAL_ERROR, COMMAND_LOST)
