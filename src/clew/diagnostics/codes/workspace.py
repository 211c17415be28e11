"""What can be wrong with the files of a workspace."""

from clew.diagnostics.diagnostic import Code, Nature

WORKSPACE_NOT_FOUND = Code(
    "WorkspaceNotFound",
    "no clew.yaml in {path} or above it",
    "The command was not given inside a workspace.",
    "run `clew init` to make a workspace, or change to the folder of one",
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
    "{path} has {size} bytes; a definition file may have {limit}",
    "A definition file is so large that it is taken for a mistake.",
    "keep data out of definition files: scenarios can name a CSV or Parquet file instead of inline rows",
)
UNKNOWN_KEY = Code(
    "UnknownKey",
    'unknown key "{key}"{where}',
    "A file has a key that its kind does not know.",
    "`clew schema` prints the keys of every file kind",
)
DUPLICATE_KEY = Code(
    "DuplicateKey",
    'the key "{key}" stands twice; first in line {first_line}',
    "One mapping has the same key more than once.",
    "remove one of them",
)
MISSING_KEY = Code(
    "MissingKey",
    'the key "{key}" is missing{where}',
    "A required key is absent.",
    "add it; `clew schema` prints the keys of every file kind",
)
INVALID_VALUE = Code(
    "InvalidValue",
    "{problem}",
    "A value has the wrong type or lies outside what is allowed.",
    "`clew schema` prints what each key takes",
)
DUPLICATE_ID = Code(
    "DuplicateId",
    'the {kind} "{id}" is already defined in {first}',
    "Two definitions of one kind have the same id or name.",
    "give each its own",
)
DUPLICATE_COLUMN = Code(
    "DuplicateColumn",
    'the column "{column}" stands twice',
    "Two columns of one table have the same name, upper and lower case taken as equal.",
    "rename one of them",
)
RESERVED_COLUMN = Code(
    "ReservedColumn",
    '"{column}" is kept by Clew and cannot be {action}',
    "A definition declares or assigns a system column that Clew itself maintains.",
    "choose a name that does not start with an underscore",
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
    "A period identifier stands in no calendar of the workspace.",
    "calendars/ defines the periods",
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
    "Fragments use each other in a circle.",
    "break the circle",
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
    "`clew init` was asked to write into a folder that holds something already.",
    "name a folder that does not exist yet, or an empty one",
    Nature.USAGE,
)
UNWRITABLE_FOLDER = Code(
    "UnwritableFolder",
    "cannot write to {path}: {reason}",
    "`clew init` cannot create the folder that was asked for, or cannot write into it.",
    "name a folder that you may write to",
    Nature.USAGE,
)
UNKNOWN_KIND = Code(
    "UnknownKind",
    'no file kind "{name}"',
    "`clew schema` was asked for a kind of file that does not exist.",
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
