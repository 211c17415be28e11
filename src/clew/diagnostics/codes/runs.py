"""What can go wrong with runs, their signals and the store that keeps them."""

from clew.diagnostics.diagnostic import Code, Nature

RUN_NOT_FOUND = Code(
    "RunNotFound",
    'no run "{run_id}"',
    "A command names a run that the state store does not have, or has no longer.",
    "`clew runs` lists the runs",
    Nature.NOT_FOUND,
)
RUN_DELETED = Code(
    "RunDeleted",
    'the run "{run_id}" was deleted',
    "A run of this id existed and was deleted as a whole; its id is not given out again.",
    "start a new run",
)
RUN_NOT_DELETABLE = Code(
    "RunNotDeletable",
    'the run "{run_id}" is {status} and cannot be deleted',
    "Only a run that has ended can be deleted.",
    "cancel the run first",
)
OVERLOADED = Code(
    "Overloaded",
    'the environment "{environment}" takes no more runs now; try again in {retry_after_s} seconds',
    "The queue policy of the environment refuses runs while too many are running or waiting.",
    "send the same request again later; it keeps its run id",
)
LATE_WRITE = Code(
    "LateWrite",
    'the write to run "{run_id}" came too late: fencing token {token} was replaced by {current}',
    "A worker wrote to a run after its lease had been given to another worker. Nothing was stored.",
    "nothing to do: the other worker carries the run on",
)
UNFENCED_WRITE = Code(
    "UnfencedWrite",
    "{event_type} may only be written by the holder of the run's lease",
    "An event that changes the state of a run was appended without a fencing token.",
    "report this with the events of the run",
)
EVENT_AFTER_THE_END = Code(
    "EventAfterTheEnd",
    "{event_type} cannot be written to a run that is {status}",
    "An event came for a run that has ended. Nothing was stored.",
    "report this with the events of the run",
)
OUT_OF_DATE = Code(
    "OutOfDate",
    'run "{run_id}" is at event {actual}, not at {expected}',
    "A decision was taken on a state of the run that had changed in the meantime. Nothing was stored.",
    "read the run again and decide anew",
)
REQUEST_ID_TAKEN = Code(
    "RequestIdTaken",
    'the request id "{request_id}" belongs to run {run_id}, of project "{project}" for period "{period}"',
    "A request id stands for one request. Sent again with another project or period it would give a run that was not "
    "asked for.",
    "take another request id for another request",
)
PERIOD_BUSY = Code(
    "PeriodBusy",
    'another run of project "{project}" for period "{period}" is under way',
    "Two runs of one project and period never run at once.",
    "wait for the other run to end, or cancel it",
)
WRITE_BUDGET_EXCEEDED = Code(
    "WriteBudgetExceeded",
    "{event_type} was not stored within {budget_ms} ms",
    "The state store took longer than the write budget allows for an event that must not be lost.",
    "check the state store's load; `write_latency_budget_ms` sets the budget",
)
STORE_UNAVAILABLE = Code(
    "StoreUnavailable",
    "the state store does not answer: {reason}",
    "The database of the state store cannot be reached, is locked for too long, or broke off the work.",
    "check that the database runs; work goes on by itself once it is back",
)
STORE_FULL = Code(
    "StoreFull",
    "the state store has no room left: {reason}",
    "The disk or the database file cannot grow. Nothing of the failed write was stored.",
    "make room; work goes on by itself",
)
STORE_UNREADABLE = Code(
    "StoreUnreadable",
    "{place} is not a state store: {reason}",
    "The file or the address does not hold a database that can be opened as a state store.",
    "check the `state_store` of the environment",
)
STORE_TOO_NEW = Code(
    "StoreTooNew",
    "the state store has schema version {found}; this version of Clew knows up to {known}",
    "A newer Clew has upgraded the database.",
    "install the newer version here too",
)
STORE_REFUSED_VALUE = Code(
    "StoreRefusedValue",
    "the state store cannot hold this value: {reason}",
    "A name or a value has characters or a length that the database does not take.",
    "shorten the value, or remove characters that cannot be printed",
)
STORE_BROKEN_PROMISE = Code(
    "StoreBrokenPromise",
    "the state store refused a statement: {reason}",
    "A statement broke a rule that the database enforces: events are never changed, keys are unique.",
    "report this with the message",
)
EVENT_TOO_NEW = Code(
    "EventTooNew",
    "this version of Clew does not know {event_type} in version {version}",
    "The history holds an event that a newer Clew wrote.",
    "install the newer version here too",
)
TOO_LARGE_FOR_HISTORY = Code(
    "TooLargeForHistory",
    "{event_type} has {size} bytes; an event may have {limit}",
    "An event carries a payload. History keeps references to artifacts, never their content.",
    "write the content to a file and refer to it as an artifact",
)
STEP_INTERRUPTED = Code(
    "StepInterrupted",
    "the step was interrupted: {reason}",
    "A running step was interrupted: by CANCEL, by the stop of its worker, or because another worker took the run.",
    "RETRY_RUN starts a cancelled run anew; the other interruptions are made good by themselves",
)
INVALID_SECRET_REFERENCE = Code(
    "InvalidSecretReference",
    '"{reference}" is not a reference to a secret',
    "References to secrets have the form secret://PROVIDER/NAME, with env, file or a configured provider.",
    "write secret://env/NAME or secret://file/NAME",
)
SECRET_NOT_FOUND = Code(
    "SecretNotFound",
    'no secret "{reference}" for tenant "{tenant}" in environment "{environment}"',
    "A reference to a secret cannot be resolved where the step runs.",
    "set the variable or write the file on the machine of the worker",
)
DELIVERY_FAILED = Code(
    "DeliveryFailed",
    'the sink "{sink}" did not take the event: {reason}',
    "The receiver of events is down or refused one. The event waits in the outbox and is sent again.",
    "check the receiver; `clew dlq` lists events that were given up",
)

AMBIGUOUS_RUN = Code(
    "AmbiguousRun",
    'several runs begin with "{run_id}": {candidates}',
    "The beginning of a run id fits more than one run.",
    "give more characters of the id",
    Nature.USAGE,
)
PROJECT_NOT_ACTIVE = Code(
    "ProjectNotActive",
    'the project "{project}" has no active version',
    "A project was to be deactivated, or to be run by its version, that is not active.",
    "activate it with `clew activate`",
)
NO_SUCH_VERSION = Code(
    "NoSuchVersion",
    'the project "{project}" has no version {version}',
    "A version of a project is asked for that was never activated in this environment.",
    "`clew projects` lists the versions that run",
    Nature.NOT_FOUND,
)
RUN_HELD = Code(
    "RunHeld",
    'another worker has the run "{run_id}"',
    "Somebody else drives the run at this moment, or did so until a few seconds ago.",
    "wait for it to end",
)
RUN_NEEDED = Code(
    "RunNeeded",
    'the dataset "{dataset}" needs the run "{run_id}": version {version} has rows of it',
    "A run was to be deleted whose rows are part of a dataset that other projects read. Without the run, the way of "
    "these rows cannot be followed any more.",
    "run the project again for the period and delete this run then, or delete it with --force; the rows stay",
)

CAPTURES_WAITING = Code(
    "CapturesWaiting",
    'the rows of the run "{run_id}" are still needed: captures or jobs after the run wait for them, {number} in all',
    "A run was to be deleted while captures that were asked for with it, or jobs of its project, are still to be made.",
    "let a worker make them (`clew worker`), or delete the run with --force, which drops them",
)

RUN_CODES = (
    RUN_NOT_FOUND,
    RUN_DELETED,
    RUN_NOT_DELETABLE,
    OVERLOADED,
    LATE_WRITE,
    UNFENCED_WRITE,
    EVENT_AFTER_THE_END,
    OUT_OF_DATE,
    REQUEST_ID_TAKEN,
    PERIOD_BUSY,
    WRITE_BUDGET_EXCEEDED,
    STORE_UNAVAILABLE,
    STORE_FULL,
    STORE_UNREADABLE,
    STORE_TOO_NEW,
    STORE_REFUSED_VALUE,
    STORE_BROKEN_PROMISE,
    EVENT_TOO_NEW,
    TOO_LARGE_FOR_HISTORY,
    STEP_INTERRUPTED,
    INVALID_SECRET_REFERENCE,
    SECRET_NOT_FOUND,
    DELIVERY_FAILED,
    AMBIGUOUS_RUN,
    PROJECT_NOT_ACTIVE,
    NO_SUCH_VERSION,
    RUN_HELD,
    RUN_NEEDED,
    CAPTURES_WAITING,
)
