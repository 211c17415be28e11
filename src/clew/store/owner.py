"""Whose rows a store handles: a state store may serve several environments, of several tenants."""

from typing import TYPE_CHECKING, Any

from clew.deferred import dataclass
from clew.runs.environment import RunEnvironment

if TYPE_CHECKING:
    import sqlalchemy as sa


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An environment of a tenant. Two environments with one name are still two if their tenants differ."""

    tenant_id: str = "default"
    environment_id: str = "dev"

    @classmethod
    def of(cls, environment: RunEnvironment) -> "Owner":
        """The owner of what an environment stores."""
        return cls(tenant_id=environment.settings.tenant, environment_id=environment.name)

    def owns(self, run: Any) -> bool:  # noqa: ANN401 - a row of runs, or a part of one
        """Whether a run belongs to this environment."""
        return (run.tenant_id, run.environment_id) == (self.tenant_id, self.environment_id)

    def rows_of(self, table: "sa.Table") -> "sa.ColumnElement[bool]":
        """The condition for rows of this environment, in a table that has both columns."""
        return (table.c.tenant_id == self.tenant_id) & (table.c.environment_id == self.environment_id)
