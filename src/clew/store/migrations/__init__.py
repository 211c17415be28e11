"""From any older schema to the current one, in place."""

from clew.store.migrations.runner import Migration, migrate
from clew.store.migrations.v0001 import Version1
from clew.store.migrations.v0002 import Version2
from clew.store.migrations.v0003 import Version3
from clew.store.migrations.v0004 import Version4
from clew.store.migrations.v0005 import Version5
from clew.store.migrations.v0006 import Version6
from clew.store.migrations.v0007 import Version7
from clew.store.migrations.v0008 import Version8
from clew.store.migrations.v0009 import Version9
from clew.store.migrations.v0010 import Version10

MIGRATIONS: tuple[Migration, ...] = (
    *(Version1(), Version2(), Version3(), Version4(), Version5(), Version6(), Version7(), Version8(), Version9()),
    Version10(),
)
"""All steps, oldest first. A new one is added at the end; none is ever changed."""

__all__ = ["MIGRATIONS", "Migration", "migrate"]
