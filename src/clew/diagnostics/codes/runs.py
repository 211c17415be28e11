"""What can go wrong with runs, their signals and the state store."""

from clew.diagnostics.diagnostic import Code, Nature

RUN_NOT_FOUND = Code(
    "RunNotFound",
    'no run "{run_id}"',
    "A command names a run that is not in the state store, or no longer is.",
    "`clew runs` lists the runs",
    Nature.NOT_FOUND,
)
RUN_DELETED = Code(
    "RunDeleted",
    'the run "{run_id}" was deleted',
    "A run with this id was deleted. Run ids are never reused.",
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
    'the environment "{environment}" accepts no more runs right now; try again in {retry_after_s} seconds',
    "The environment rejects new runs while too many are running or waiting.",
    "retry the same request later; it keeps its run id",
)
LATE_WRITE = Code(
    "LateWrite",
    'the write to run "{run_id}" came too late: fencing token {token} was replaced by {current}',
    "A worker wrote to a run after another worker had taken over its lease. Nothing was stored.",
    "nothing to do: the other worker continues the run",
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
    "An event arrived for a run that has already ended. Nothing was stored.",
    "report this with the events of the run",
)
OUT_OF_DATE = Code(
    "OutOfDate",
    'run "{run_id}" is at event {actual}, not at {expected}',
    "The run changed after the decision was made. Nothing was stored.",
    "read the run again, then decide",
)
REQUEST_ID_TAKEN = Code(
    "RequestIdTaken",
    'the request id "{request_id}" belongs to run {run_id}, of project "{project}" for period "{period}"',
    "A request id identifies one request. The same id arrived with a different project or period.",
    "use a new request id for each new request",
)
PERIOD_BUSY = Code(
    "PeriodBusy",
    'another run of project "{project}" for period "{period}" is in progress',
    "Only one run per project and period may be in progress.",
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
    "the state store does not respond: {reason}",
    "The state store database is unreachable, locked for too long, or dropped the connection.",
    "check that the database is running; work resumes on its own once it is back",
)
STORE_READ_ONLY = Code(
    "StoreReadOnly",
    "the state store {place} can only be read here",
    "The state store is a file that this user may not write, or that lies on a read-only disk.",
    "run commands that change something as its owner, or where the workspace can be written",
)
UNRECORDED_READ = Code(
    "UnrecordedRead",
    "the state store can only be read here, so who reads these rows cannot be recorded",
    "Every read of rows is recorded, and the state store is a file that cannot be written.",
    "read them where the state store can be written, or set `unrecorded_reads: allow` in the environment",
)
STORE_FULL = Code(
    "StoreFull",
    "the state store has no room left: {reason}",
    "The disk or the database file is full. Nothing from the failed write was stored.",
    "free up space; work resumes on its own",
)
STORE_UNREADABLE = Code(
    "StoreUnreadable",
    "{place} is not a state store: {reason}",
    "The file or address is not a database that Clew can open as a state store.",
    "check the `state_store` of the environment",
)
STORE_TOO_NEW = Code(
    "StoreTooNew",
    "the state store has schema version {found}; this version of Clew supports up to {known}",
    "A newer version of Clew has upgraded the database.",
    "install that version here, too",
)
STORE_REFUSED_VALUE = Code(
    "StoreRefusedValue",
    "the state store cannot hold this value: {reason}",
    "A name or value is too long, or contains characters that the database does not accept.",
    "shorten the value, or remove non-printable characters",
)
STORE_BROKEN_PROMISE = Code(
    "StoreBrokenPromise",
    "the state store refused a statement: {reason}",
    "A statement violated a database constraint: events are append-only and keys are unique.",
    "report this with the full message",
)
EVENT_TOO_NEW = Code(
    "EventTooNew",
    "this version of Clew does not know {event_type} in version {version}",
    "A newer version of Clew wrote this event.",
    "install that version here, too",
)
TOO_LARGE_FOR_HISTORY = Code(
    "TooLargeForHistory",
    "{event_type} has {size} bytes; the limit is {limit}",
    "An event is too large. Events refer to artifacts; they never contain them.",
    "write the content to a file and refer to it as an artifact",
)
STEP_INTERRUPTED = Code(
    "StepInterrupted",
    "the step was interrupted: {reason}",
    "A running step was interrupted: by CANCEL, by its worker stopping, or by another worker taking over the run.",
    "RETRY_RUN restarts a cancelled run; other interruptions recover on their own",
)
INVALID_SECRET_REFERENCE = Code(
    "InvalidSecretReference",
    '"{reference}" is not a secret reference',
    "A secret reference has the form secret://PROVIDER/NAME, where PROVIDER is env, file or a configured provider.",
    "write secret://env/NAME or secret://file/NAME",
)
SECRET_NOT_FOUND = Code(
    "SecretNotFound",
    'no secret "{reference}" for tenant "{tenant}" in environment "{environment}"',
    "The secret is not available on the machine that runs the step.",
    "set the variable or create the file on that machine",
)
WEAK_SECRET = Code(
    "WeakSecret",
    'the value of the secret "{reference}" is {problem}',
    "Clew removes the values of secrets from everything it writes. A short value or an ordinary word also occurs in "
    "names, dates and counts, so it cannot be removed without damage.",
    "use a longer value, with letters and digits",
)
INVALID_CREDENTIALS = Code(
    "InvalidCredentials",
    "{reference} holds no credentials that can be used: {problem}",
    "The secret for an object store does not have the parts that its kind of store needs.",
    "write the secret for S3 as ACCESS_KEY:SECRET_KEY, or remove credential_ref to use the platform's own credentials",
)
TABLE_TAG_STAYS = Code(
    "TableTagStays",
    "the tag {tag} of the table {table} could not be removed: {problem}",
    "A run that held a snapshot of an Iceberg table was deleted. Its tag stays, and the snapshot with it, until the "
    "tag expires or is removed.",
    "let this user write to the table's metadata next time, or remove the tag with ALTER TABLE ... DROP TAG",
)
OTHER_SEAL_KEY = Code(
    "OtherSealKey",
    'the ledger of environment "{environment}" is sealed with another key than the one of this machine',
    "Everything that an environment records is sealed with one key. Where several machines share a state store, "
    "all of them need the same one.",
    "set `evidence: {key_ref: secret://...}` in the environment, or copy the key file of the machine that began",
)
INVALID_SEAL_KEY = Code(
    "InvalidSealKey",
    "{place} holds no key: {problem}",
    "The key that seals histories must be at least 16 bytes that nobody can guess.",
    "write 64 random hexadecimal digits, such as those that `openssl rand -hex 32` prints",
)
DELIVERY_FAILED = Code(
    "DeliveryFailed",
    'the event bus "{bus}" did not accept the event: {reason}',
    "The receiver is down or rejected the event. The event stays in the outbox and is retried.",
    "check the receiver; `clew dlq` lists the events that Clew stopped retrying",
)

AMBIGUOUS_RUN = Code(
    "AmbiguousRun",
    'several runs start with "{run_id}": {candidates}',
    "The start of a run id matches more than one run.",
    "give more characters of the id",
    Nature.USAGE,
)
PROJECT_NOT_ACTIVE = Code(
    "ProjectNotActive",
    'the project "{project}" has no active version',
    "The command needs an active version, and the project has none.",
    "activate it with `clew activate`",
)
NO_SUCH_VERSION = Code(
    "NoSuchVersion",
    'the project "{project}" has no version {version}',
    "The requested version was never activated in this environment.",
    "`clew projects` lists the active versions",
    Nature.NOT_FOUND,
)
RUN_HELD = Code(
    "RunHeld",
    'another worker holds the run "{run_id}"',
    "Another process holds the lease of the run, or held it until a few seconds ago.",
    "wait for it to end",
)
RUN_NEEDED = Code(
    "RunNeeded",
    'the dataset "{dataset}" needs the run "{run_id}": version {version} contains its rows',
    "The rows of this run belong to a dataset that other projects read. Without the run, those rows can no longer be "
    "traced back.",
    "rerun the project for that period and then delete this run, or delete it now with --force; the rows stay",
)

NOT_RERUNNABLE = Code(
    "NotRerunnable",
    'the run "{run_id}" is {status}: only a run that has ended can be repeated',
    "A rerun takes over what an earlier run has committed, and that run may still write.",
    "wait until it has ended, or cancel it",
)
RUN_REPEATED = Code(
    "RunRepeated",
    'the run "{run_id}" is still needed: the run {rerun} takes over from it',
    "A rerun that has not completed may take over files of the run that it repeats.",
    "wait until the rerun has completed, or delete the rerun first",
)

NOT_KNOWN_THEN = Code(
    "NotKnownThen",
    "at {at}, {problem}",
    "A run goes back to what was known at a time, and that cannot be told: the project had no active version, a "
    "dataset had none or its versions of then were deleted, or it is read from files or a database that keep no "
    "versions and no run had read it.",
    "name a later time",
)

CAPTURES_WAITING = Code(
    "CapturesWaiting",
    'the rows of the run "{run_id}" are still needed: {number} captures or postlude jobs are waiting for them',
    "The run has captures or postlude jobs that are not finished yet.",
    "let a worker finish them (`clew worker`), or delete the run with --force, which drops them",
)

TOTALS_DIFFER = Code(
    "TotalsDiffer",
    "{problem}",
    "What a run loaded, appended and created is not what it wrote, deleted and left out: in rows, or in a control "
    "total that is declared with `on_difference: fail`. The output in question is not published, and the run is not "
    "COMPLETED.",
    "`clew reconcile RUN` shows the waterfall from source to output; each number leads to its rows",
)

CHECK_FAILED = Code(
    "CheckFailed",
    "{problem}",
    "A check with `severity: fail` did not pass. The run stops before its next output is published.",
    "`clew checks RUN --rows` shows the rows that fail; correct the data or the rule, then run again",
)

UNKNOWN_CHECK = Code(
    "UnknownCheck",
    'there is no check "{name}"',
    "A command names a check that the plan of the run does not have.",
    "`clew checks RUN` lists the checks of a run",
    Nature.NOT_FOUND,
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
    STORE_READ_ONLY,
    UNRECORDED_READ,
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
    WEAK_SECRET,
    INVALID_CREDENTIALS,
    TABLE_TAG_STAYS,
    OTHER_SEAL_KEY,
    INVALID_SEAL_KEY,
    DELIVERY_FAILED,
    AMBIGUOUS_RUN,
    PROJECT_NOT_ACTIVE,
    NO_SUCH_VERSION,
    RUN_HELD,
    RUN_NEEDED,
    NOT_RERUNNABLE,
    RUN_REPEATED,
    NOT_KNOWN_THEN,
    CAPTURES_WAITING,
    TOTALS_DIFFER,
    CHECK_FAILED,
    UNKNOWN_CHECK,
)
