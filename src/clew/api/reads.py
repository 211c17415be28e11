"""The record of who has read which rows, with the columns and the number of rows of each answer.

It is written before the answer is given: for commands and Python at once, for a request over HTTP when all is known
that it gets.
"""

from collections.abc import Collection, Iterable

from clew.api.opened_environment import EnvironmentAccess, Principal
from clew.auth.access_log import AccessRecord, Subject
from clew.auth.gathered_reads import GatheredReads, ReturnedRows, read_in_words
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
    access: EnvironmentAccess,
    subject: Subject,
    subject_id: str,
    asked: str,
    columns: Iterable[str],
    rows: Collection[str] | int,
) -> None:
    """Record what was asked for, and which columns of how many rows are the answer.

    `rows` are what identifies the rows, or how many there are.
    """
    returned = ReturnedRows(subject, subject_id, asked, tuple(columns), rows)
    if access.reads is not None:
        access.reads.add(returned)
    else:
        record_access(access, subject, subject_id, read_in_words(asked, [returned]))


def record_gathered(access: EnvironmentAccess, reads: GatheredReads) -> None:
    """Record what one request asked for and gets."""
    for subject, subject_id, detail in reads.details():
        record_access(access, subject, subject_id, detail)
