"""Whose rows a store handles: a state store may serve several environments, of several tenants."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An environment of a tenant. Two environments with one name are still two if their tenants differ."""

    tenant_id: str = "default"
    environment_id: str = "dev"

    def owns(self, run: sa.Row[Any]) -> bool:
        """Whether a run belongs to this environment."""
        return (run.tenant_id, run.environment_id) == (self.tenant_id, self.environment_id)

    def rows_of(self, table: sa.Table) -> sa.ColumnElement[bool]:
        """The condition for rows of this environment, in a table that has both columns."""
        return (table.c.tenant_id == self.tenant_id) & (table.c.environment_id == self.environment_id)
