"""What can go wrong while a run reads, changes and writes data."""

from clew.diagnostics.code import Code

SOURCE_UNAVAILABLE = Code(
    "SourceUnavailable",
    "{problem}",
    "Data that a run reads is not where its resolver says, cannot be opened, or no rule says where it is.",
    "check the path or the table, and the rules of the resolver",
)
SCHEMA_MISMATCH = Code(
    "SchemaMismatch",
    "{problem}",
    "Data that was read is not as its dataset says: a column is missing, a value has another type, "
    "a value that must not be missing is, or two rows have the same natural key.",
    "correct the data, or the definition of the dataset",
)

ENGINE_CODES = (
    SOURCE_UNAVAILABLE,
    SCHEMA_MISMATCH,
)
