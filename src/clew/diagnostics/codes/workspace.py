"""What can be wrong with the files of a workspace."""

from clew.diagnostics.diagnostic import Code, Nature

WORKSPACE_NOT_FOUND = Code(
    "WorkspaceNotFound",
    "no clew.yaml in {path} or above it",
    "The current folder is not part of a workspace.",
    "run `clew init` to create a workspace, or change to one",
    Nature.NOT_FOUND,
)
UNREADABLE_FILE = Code(
    "UnreadableFile",
    "cannot read {path}: {reason}",
    "A file of the workspace cannot be opened or is not UTF-8 text.",
    "check that the file exists, is readable and is saved as UTF-8",
)
FILE_TOO_LARGE = Code(
    "FileTooLarge",
    "{path} has {size} bytes; the limit for a definition file is {limit}",
    "A definition file is far larger than any definition should be.",
    "keep data out of definition files: a scenario can refer to a CSV or Parquet file instead of listing its rows",
)
UNKNOWN_KEY = Code(
    "UnknownKey",
    'unknown key "{key}"{where}',
    "This kind of file does not have this key.",
    "`clew schema` prints the keys of every file kind",
)
DUPLICATE_KEY = Code(
    "DuplicateKey",
    'duplicate key "{key}"; first used in line {first_line}',
    "A mapping contains the same key more than once.",
    "remove one of them",
)
MISSING_KEY = Code(
    "MissingKey",
    'the key "{key}" is missing{where}',
    "A required key is missing.",
    "add it; `clew schema` prints the keys of every file kind",
)
INVALID_VALUE = Code(
    "InvalidValue",
    "{problem}",
    "A value has the wrong type or is out of range.",
    "`clew schema` prints what each key takes",
)
DUPLICATE_ID = Code(
    "DuplicateId",
    'the {kind} "{id}" is already defined in {first}',
    "Two definitions of one kind have the same id or name.",
    "give each a unique id and name",
)
DUPLICATE_COLUMN = Code(
    "DuplicateColumn",
    'duplicate column "{column}"',
    "Two columns of a table have the same name. Column names ignore case.",
    "rename one of them",
)
RESERVED_COLUMN = Code(
    "ReservedColumn",
    '"{column}" is a system column and cannot be {action}',
    "A definition declares or assigns a system column, which only Clew may set.",
    "choose a name that does not start with an underscore",
)
SECRET_IN_CLEAR = Code(
    "SecretInClear",
    'the option "{option}" holds a secret in clear',
    "An option whose name or value looks like a password, key or token is written out. Definitions are kept in version "
    "control, and plans show them.",
    "write a reference such as secret://env/NAME, and keep the value outside the workspace",
)
UNKNOWN_PROJECT = Code(
    "UnknownProject",
    'no project "{name}"',
    "A command or a scenario names a project that the workspace does not have.",
    "`clew projects` lists them",
    Nature.NOT_FOUND,
)
UNKNOWN_DATASET = Code(
    "UnknownDataset",
    'no dataset "{name}"',
    "A reference names a dataset that is neither defined in the workspace nor registered by a project.",
    "define it under datasets/, or correct the name",
)
NO_SUCH_DATASET = Code(
    "NoSuchDataset",
    'no dataset "{name}"',
    "A command names a dataset that is neither defined in the workspace nor registered by a run.",
    "`clew datasets` lists them",
    Nature.NOT_FOUND,
)
DATASET_INACTIVE = Code(
    "DatasetInactive",
    'the dataset "{name}" is {status}, not active',
    "A project uses a dataset whose status is not active.",
    "set `status: active` in its file once it is ready for use",
)
UNKNOWN_RESOLVER = Code(
    "UnknownResolver",
    "{problem}",
    "A reference names a resolver that does not exist, or a dataset has none and there is no default.",
    "define it under resolvers/, or mark one resolver with `is_default: true`",
)
RESOLVER_INACTIVE = Code(
    "ResolverInactive",
    'the resolver "{name}" is {status}, not active',
    "A dataset, a project or the default relies on a resolver whose status is not active.",
    "set `status: active` in its file once it is ready for use, or choose another resolver",
)
UNKNOWN_DATASOURCE = Code(
    "UnknownDatasource",
    'no datasource "{name}"',
    "A resolver rule or a destination names a datasource that does not exist.",
    "define it under datasources/, or correct the name",
)
UNKNOWN_PERIOD = Code(
    "UnknownPeriod",
    'no period "{name}"',
    "No calendar of the workspace defines this period.",
    "the files in calendars/ define the periods",
    Nature.NOT_FOUND,
)
UNKNOWN_FRAGMENT = Code(
    "UnknownFragment",
    'no fragment "{name}"',
    "A `use` names a fragment that does not exist.",
    "define it under fragments/, or correct the name",
)
FRAGMENT_CYCLE = Code(
    "FragmentCycle",
    "the fragment uses itself: {path}",
    "Fragments refer to each other in a cycle.",
    "break the cycle",
)
UNKNOWN_ENVIRONMENT = Code(
    "UnknownEnvironment",
    'no environment "{name}"',
    "A command names an environment that clew.yaml does not define.",
    "clew.yaml lists the environments",
    Nature.NOT_FOUND,
)
WORKSPACE_EXISTS = Code(
    "WorkspaceExists",
    "{path} is not empty",
    "`clew init` only writes to an empty or new folder.",
    "choose a new or empty folder",
    Nature.USAGE,
)
UNWRITABLE_FOLDER = Code(
    "UnwritableFolder",
    "cannot write to {path}: {reason}",
    "`clew init` cannot create the folder or write to it.",
    "choose a folder that you can write to",
    Nature.USAGE,
)
UNKNOWN_KIND = Code(
    "UnknownKind",
    'no file kind "{name}"',
    "`clew schema` does not know this kind of file.",
    "`clew schema` without an argument lists the kinds",
    Nature.NOT_FOUND,
)

WORKSPACE_CODES = (
    WORKSPACE_NOT_FOUND,
    UNREADABLE_FILE,
    FILE_TOO_LARGE,
    UNKNOWN_KEY,
    DUPLICATE_KEY,
    MISSING_KEY,
    INVALID_VALUE,
    DUPLICATE_ID,
    DUPLICATE_COLUMN,
    RESERVED_COLUMN,
    SECRET_IN_CLEAR,
    UNKNOWN_PROJECT,
    UNKNOWN_DATASET,
    NO_SUCH_DATASET,
    DATASET_INACTIVE,
    UNKNOWN_RESOLVER,
    RESOLVER_INACTIVE,
    UNKNOWN_DATASOURCE,
    UNKNOWN_PERIOD,
    UNKNOWN_FRAGMENT,
    FRAGMENT_CYCLE,
    UNKNOWN_ENVIRONMENT,
    WORKSPACE_EXISTS,
    UNWRITABLE_FOLDER,
    UNKNOWN_KIND,
)
