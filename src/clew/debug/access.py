"""Who may read a capture."""

from collections.abc import Collection
from dataclasses import dataclass

from clew.debug.records import CaptureRecord
from clew.diagnostics import UserError
from clew.diagnostics.codes.debug import CAPTURE_ACCESS_DENIED, CAPTURE_NOT_FOUND
from clew.runs.access.roles import AccessRole, Permission


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who asks for a capture."""

    role: AccessRole
    tenant_id: str


def require_reading(record: CaptureRecord, reader: Reader, include_roles: Collection[str]) -> None:
    """Refuse those who may not. For somebody of another tenant the capture does not exist."""
    if record.tenant_id != reader.tenant_id:
        raise UserError(CAPTURE_NOT_FOUND.anywhere(capture_id=record.capture_id))
    if Permission.READ_CAPTURES not in reader.role.permissions:
        problem = f"somebody in the role {reader.role} may not read captures"
        raise UserError(CAPTURE_ACCESS_DENIED.anywhere(problem=problem))
    manifest = record.outcome.manifest
    shows_personal = manifest is not None and manifest.shows_personal
    if shows_personal and include_roles and reader.role not in include_roles:
        problem = f"this capture shows personal columns, which somebody in the role {reader.role} may not read"
        raise UserError(CAPTURE_ACCESS_DENIED.anywhere(problem=problem))
