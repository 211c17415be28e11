"""What can stop a question about rows before it is answered."""

from clew.diagnostics.diagnostic import Code

QUESTION_TOO_LONG = Code(
    "QuestionTooLong",
    "the question was not answered within {seconds} seconds",
    "The environment limits how long a question about rows may take. Nothing was changed.",
    "narrow the condition, ask for one step or one row, or raise questions.deadline_seconds of the environment",
)
QUESTION_TOO_LARGE = Code(
    "QuestionTooLarge",
    "the answer needs more than {megabytes} MB of memory",
    "The environment limits how much memory a question about rows may take. Nothing was changed.",
    "narrow the condition, ask for fewer rows, or raise questions.memory_megabytes of the environment",
)
CONDITION_TOO_LONG = Code(
    "ConditionTooLong",
    "the condition has {length} characters, and may have {most}",
    "Every question about rows is recorded with its whole condition, so its length is limited.",
    "ask with a shorter condition, or in several questions",
)
TOO_MANY_QUESTIONS = Code(
    "TooManyQuestions",
    "you have {waiting} questions waiting already; try again in {retry_after_s} seconds",
    "The server answers a few questions of each caller at a time and lets some more wait.",
    "wait for the answers to your other questions",
)
QUESTIONS_BUSY = Code(
    "QuestionsBusy",
    "the server is busy with other questions; try again in {retry_after_s} seconds",
    "The server answers a limited number of questions at a time, and too many were waiting already or for too long.",
    "try again later, or raise questions.max_running of the environment",
)
SERVER_STOPPING = Code(
    "ServerStopping",
    "the server is stopping",
    "The server was asked to stop before the question was answered.",
    "ask again once it has restarted",
)
CALLER_GONE = Code(
    "CallerGone",
    "the caller has left",
    "The connection closed before the question was answered, so the server stopped working on it. The metrics count "
    "such questions.",
    "stay connected until the answer has arrived",
)

QUESTION_CODES = (
    QUESTION_TOO_LONG,
    QUESTION_TOO_LARGE,
    CONDITION_TOO_LONG,
    TOO_MANY_QUESTIONS,
    QUESTIONS_BUSY,
    SERVER_STOPPING,
    CALLER_GONE,
)
