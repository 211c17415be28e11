"""How stores are reached that are not the storage root's: those of tables, whose files stay where they lie.

What a run has pinned names its files by their addresses. Whoever reads them later opens their store by the settings of
the environment, or by those of the datasource, which are kept with the files. Secrets are named and never held.
"""

from clew.deferred import dataclass


@dataclass(frozen=True, slots=True)
class StoreReach:
    """The settings by which a datasource reaches its store; what is None is left to the store's library."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    credential_ref: str | None = None
    """The reference to its secret."""
