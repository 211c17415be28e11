"""What is around every page: sections, who is there, scripts."""

from dataclasses import dataclass

from clew.runs.access.roles import Permission
from clew.server.access.visit import Visit


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the navigation."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Shell:
    """The frame of a page."""

    sections: tuple[Section, ...]
    section: str
    workspace: str
    environment: str
    user: str
    role: str
    csrf: str | None
    may_read_rows: bool
    scripts: tuple[str, ...]
    json_address: str | None


_SECTIONS = (
    (Section("Runs", "/runs"), Permission.READ_RUNS),
    (Section("Projects", "/projects"), Permission.READ_RUNS),
    (Section("Datasets", "/datasets"), Permission.READ_RUNS),
    (Section("Lineage", "/lineage"), Permission.READ_RUNS),
    (Section("Captures", "/captures"), Permission.READ_CAPTURES),
    (Section("Operations", "/operations"), Permission.READ_RUNS),
)


def shell(visit: Visit, section: str, *, scripts: tuple[str, ...] = (), json_address: str | None = None) -> Shell:
    """The frame of a page for somebody. What they may not see is not offered."""
    caller, site = visit.caller, visit.site
    return Shell(
        sections=tuple(each for each, permission in _SECTIONS if caller.may(permission)),
        section=section,
        workspace=site.live.current().name,
        environment=site.environment.name,
        user=caller.name,
        role=caller.role.value,
        csrf=caller.csrf,
        may_read_rows=caller.may(Permission.READ_ROWS),
        scripts=scripts,
        json_address=json_address,
    )
