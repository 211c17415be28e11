"""The record of who has read which rows: written before the answer is given.

The server records what is asked for by its routes. Everyone else, commands and Python, is recorded here, with the
columns and the number of rows of the answer.
"""

from collections.abc import Iterable

from clew.api.opened_environment import EnvironmentAccess, Principal
from clew.auth.access_log import AccessRecord, Subject
from clew.runs.clock import utc_now


def record_access(
    access: EnvironmentAccess, subject: Subject, subject_id: str, detail: str, *, by: Principal | None = None
) -> None:
    """Record what someone, by default the principal, reads or changes. Returns once the record is stored."""
    with access.opened() as at:
        who = by or at.principal
        at.store.access_log.add(
            AccessRecord(
                tenant_id=who.tenant_id or at.environment.settings.tenant,
                actor=who.name,
                role=who.role.value,
                token_id=who.token_id,
                subject=subject,
                subject_id=subject_id,
                detail=detail,
                read_at=utc_now(),
            )
        )


def record_read(
    access: EnvironmentAccess, subject: Subject, subject_id: str, asked: str, columns: Iterable[str], rows: int
) -> None:
    """Record what was asked for, and which columns of how many rows were the answer."""
    if access.records_reads:
        named = f" of {', '.join(listed)}" if (listed := tuple(columns)) else ""
        returned = f"{rows:,} row{'' if rows == 1 else 's'}{named}"
        record_access(access, subject, subject_id, f"{asked}; returned {returned}")
