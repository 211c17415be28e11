"""Datasources: connections to where data lives, and the check that their addresses contain no password."""

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from clew.definitions.object_stores import problems_of_address, problems_of_endpoint
from clew.definitions.shapes import (
    FLAG,
    NAME,
    PATH,
    SECRET,
    SLUG,
    TEXT,
    ConstantShape,
    Definition,
    Located,
    Record,
    Tagged,
    key,
    record,
)
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE

_PASSWORDS = (
    re.compile(r"://[^/@?#]*:[^/@?#]+@"),  # postgresql://user:password@host
    re.compile(r"[?&;](?:password|pwd|passwd)=[^&;]", re.IGNORECASE),  # ...?password=, ...;password=
    re.compile(r"^jdbc:oracle:[^:]*:[^/@]+/[^@/]+@", re.IGNORECASE),  # jdbc:oracle:thin:user/password@host
)

_STATE_STORES = re.compile(r"sqlite:///.|postgresql(\+psycopg)?://", re.IGNORECASE)

SESSION_CATALOG = "spark_catalog"
"""What Spark calls its own catalog, or Hive's."""

NOT_HERE = "remove it, and name a secret instead: secret://env/NAME"


def has_password(address: str) -> bool:
    """Whether an address of a database contains a password, in one of the ways that drivers take it."""
    return any(pattern.search(address) for pattern in _PASSWORDS)


def can_hold_state(address: str) -> bool:
    """Whether an address is one of a database that a state store can be in."""
    return _STATE_STORES.match(address) is not None


@record("the options of a files datasource")
class FilesOptions(Located):
    """Where the files are."""

    root: str = key(PATH, "The folder: relative to the workspace, absolute, or an address such as s3://bucket/folder.")
    endpoint: str | None = key(
        NAME, "The http or https address of an object store that is not the environment's.", default=None
    )
    region: str | None = key(NAME, "The region of the bucket.", default=None)
    path_style: bool | None = key(
        FLAG, "Whether the bucket stands in the path rather than in the host name.", default=None
    )

    def check(self) -> Iterator[Diagnostic]:
        """The root and the endpoint are ones that can be used."""
        yield from problems_of_address(self.root, self.place("root"))
        yield from problems_of_endpoint(self.endpoint, self.place("endpoint"))


@record("the options of a database datasource")
class DatabaseOptions(Located):
    """How to reach the database."""

    url: str = key(NAME, "The address: jdbc:postgresql://host/database or postgresql://host/database.")
    driver: str | None = key(NAME, "The class of the JDBC driver.", default=None)
    jar: str | None = key(TEXT, "The jar of the JDBC driver.", default=None)
    schema: str | None = key(NAME, "The database schema that tables are looked up in.", default=None)

    def check(self) -> Iterator[Diagnostic]:
        """Definitions are kept in version control, and passwords are not."""
        if has_password(self.url):
            problem = "the address of the database contains a password"
            hint = f"{NOT_HERE}, as credential_ref of the datasource"
            yield INVALID_VALUE.at(self.place("url"), problem=problem, hint=hint)


@record("a files datasource")
class FilesDatasource(Definition):
    """Files below a folder."""

    id: str = key(SLUG, "The id, unique among datasources.")
    name: str = key(NAME, "The name; by default the id.", same_as="id")
    description: str = key(TEXT, "What the datasource is.", default="")
    type: Literal["files"] = key(ConstantShape("files"), "The kind of datasource.")
    credential_ref: str | None = key(SECRET, "The secret with its credentials.", default=None)
    options: FilesOptions = key(Record(FilesOptions), "Where the files are.")


@record("a database datasource")
class DatabaseDatasource(Definition):
    """Tables of a database."""

    id: str = key(SLUG, "The id, unique among datasources.")
    name: str = key(NAME, "The name; by default the id.", same_as="id")
    description: str = key(TEXT, "What the datasource is.", default="")
    type: Literal["database"] = key(ConstantShape("database"), "The kind of datasource.")
    credential_ref: str | None = key(SECRET, "The secret with its credentials.", default=None)
    options: DatabaseOptions = key(Record(DatabaseOptions), "How to reach the database.")


@record("the options of a catalog datasource")
class CatalogOptions(Located):
    """Which catalog, and where in it."""

    catalog: str = key(
        NAME, "What Spark calls the catalog: its settings begin with spark.sql.catalog.NAME.", default=SESSION_CATALOG
    )
    schema: str | None = key(NAME, "The schema that tables are looked up in.", default=None)


@record("a catalog datasource")
class CatalogDatasource(Definition):
    """Tables of a Spark catalog: Hive, Unity, Glue, Iceberg's."""

    id: str = key(SLUG, "The id, unique among datasources.")
    name: str = key(NAME, "The name; by default the id.", same_as="id")
    description: str = key(TEXT, "What the datasource is.", default="")
    type: Literal["catalog"] = key(ConstantShape("catalog"), "The kind of datasource.")
    options: CatalogOptions = key(
        Record(CatalogOptions), "Which catalog, and where in it.", default_factory=CatalogOptions
    )

    def full_name(self, written: str) -> tuple[str, ...] | None:
        """Catalog, schema and table, of which a name may leave out what is given here; None where it is not a name."""
        pieces = [piece.strip().strip("`") for piece in written.split(".")]
        if not all(pieces):
            return None
        if len(pieces) > 2 and pieces[0] == self.options.catalog:
            return tuple(pieces)
        schema = self.options.schema or ("default" if self.options.catalog == SESSION_CATALOG else None)
        if len(pieces) == 1 and schema is not None:
            pieces = [*schema.split("."), *pieces]
        return (self.options.catalog, *pieces)


Datasource: TypeAlias = FilesDatasource | DatabaseDatasource | CatalogDatasource

DATASOURCE: Tagged[Datasource] = Tagged(
    "a datasource",
    "type",
    {
        "files": Record(FilesDatasource),
        "database": Record(DatabaseDatasource),
        "catalog": Record(CatalogDatasource),
    },
)
