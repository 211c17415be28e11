"""Datasources: connections to where data lives."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.model.addresses import NOT_HERE, has_password
from clew.model.shapes import NAME, PATH, SECRET, SLUG, TEXT, Constant, Definition, Located, Record, Tagged, key, record


@record("the options of a files datasource")
class FilesOptions(Located):
    """Where the files are."""

    root: str = key(PATH, "The folder: relative to the workspace, absolute, or an URL such as s3a://bucket/folder.")


@record("the options of a database datasource")
class DatabaseOptions(Located):
    """How the database is reached."""

    url: str = key(NAME, "The address: jdbc:postgresql://host/database or postgresql://host/database.")
    driver: str | None = key(NAME, "The class of the JDBC driver.", default=None)
    jar: str | None = key(TEXT, "The jar of the JDBC driver.", default=None)
    schema: str | None = key(NAME, "The database schema that tables are looked up in.", default=None)

    def check(self) -> Iterator[Diagnostic]:
        """Definitions are kept in version control, and passwords are not."""
        if has_password(self.url):
            problem = "a password stands in the address of the database"
            hint = f"{NOT_HERE}, as credential_ref of the datasource"
            yield INVALID_VALUE.at(self.place("url"), problem=problem, hint=hint)


@record("a files datasource")
class FilesDatasource(Definition):
    """Files below a folder."""

    id: str = key(SLUG, "The id, unique among datasources.")
    name: str = key(NAME, "The name; the id where left out.", same_as="id")
    description: str = key(TEXT, "What the datasource is.", default="")
    type: Literal["files"] = key(Constant("files"), "The kind of datasource.")
    credential_ref: str | None = key(SECRET, "The secret that opens it.", default=None)
    options: FilesOptions = key(Record(FilesOptions), "Where the files are.")


@record("a database datasource")
class DatabaseDatasource(Definition):
    """Tables of a database."""

    id: str = key(SLUG, "The id, unique among datasources.")
    name: str = key(NAME, "The name; the id where left out.", same_as="id")
    description: str = key(TEXT, "What the datasource is.", default="")
    type: Literal["database"] = key(Constant("database"), "The kind of datasource.")
    credential_ref: str | None = key(SECRET, "The secret that opens it.", default=None)
    options: DatabaseOptions = key(Record(DatabaseOptions), "How the database is reached.")


Datasource: TypeAlias = FilesDatasource | DatabaseDatasource

DATASOURCE: Tagged[Datasource] = Tagged(
    "a datasource", "type", {"files": Record(FilesDatasource), "database": Record(DatabaseDatasource)}
)
