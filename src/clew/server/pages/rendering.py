"""Renders pages: as HTML for people and as JSON for programs, from the same data.

Templates escape every value, and a missing name is an error. All pages share one frame: sections, the user, scripts.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Never
from uuid import uuid4

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from jinja2 import Environment, FileSystemLoader, Undefined
from markupsafe import Markup

from clew.auth.roles import Permission
from clew.deferred import dataclass
from clew.server.access.visit import Visit
from clew.server.errors import is_for_programs
from clew.server.pages import addresses
from clew.server.pages.drawing.picture_file import PictureFile

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
_DIGITS = 12


class _Strict(Undefined):
    """A missing name is an error; an `if` within an expression may omit its `else`."""

    def __str__(self) -> str:
        self._refuse()
        return ""

    def __bool__(self) -> bool:
        self._refuse()
        return False

    def __iter__(self) -> Iterator[Never]:
        self._refuse()
        return iter(())

    def _refuse(self) -> None:
        if not (self._undefined_hint or "").startswith("the inline if-expression"):
            self._fail_with_undefined_error()


@dataclass(frozen=True)
class Templates:
    """The templates of the pages."""

    @cached_property
    def environment(self) -> Environment:
        """A Jinja environment that escapes everything."""
        environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=_Strict,
        )
        environment.globals |= {"addresses": addresses, "new_id": lambda: str(uuid4()), "static": self.static}
        return environment

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        return {file.name: sha256(file.read_bytes()).hexdigest()[:_DIGITS] for file in STATIC.iterdir()}

    def static(self, name: str) -> str:
        """The address of a style, script or image. It changes with the content, so browsers may cache it."""
        return f"/static/{name}?v={self._versions[name]}"

    @cached_property
    def style(self) -> Markup:
        """The stylesheet, for pages that embed it. It is part of this package, so it is not escaped."""
        text = (STATIC / "clew.css").read_text(encoding="utf-8")
        return Markup(f"<style>\n{text}</style>")  # noqa: S704 - a file of this package

    def render(self, name: str, **context: object) -> str:
        """A template with its content."""
        return self.environment.get_template(name).render(**context)


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
    (Section("Overview", "/"), Permission.READ_RUNS),
    (Section("Runs", "/runs"), Permission.READ_RUNS),
    (Section("Projects", "/projects"), Permission.READ_RUNS),
    (Section("Datasets", "/datasets"), Permission.READ_RUNS),
    (Section("Lineage", "/lineage"), Permission.READ_RUNS),
    (Section("Captures", "/captures"), Permission.READ_CAPTURES),
    (Section("Operations", "/operations"), Permission.READ_RUNS),
    (Section("Audit", "/audit"), Permission.READ_ACCESS_LOG),
)


def shell(visit: Visit, section: str, *, scripts: tuple[str, ...] = (), json_address: str | None = None) -> Shell:
    """The frame of a page for a caller. It offers only what they may see."""
    caller, workspace = visit.caller, visit.workspace
    return Shell(
        sections=tuple(each for each, permission in _SECTIONS if caller.may(permission)),
        section=section,
        workspace=workspace.name,
        environment=workspace.environment_name,
        user=caller.name,
        role=caller.role.value,
        csrf=caller.csrf,
        may_read_rows=caller.may(Permission.READ_ROWS),
        scripts=scripts,
        json_address=json_address,
    )


class Desk:
    """Writes the response to one request."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def templates(self) -> Templates:
        """The templates of the application."""
        found: Templates = self._request.app.state.templates
        return found

    @property
    def wants_json(self) -> bool:
        """Whether the response goes to a program."""
        return is_for_programs(self._request)

    def page(
        self,
        visit: Visit,
        template: str,
        *,
        section: str,
        page: Callable[[], object],
        document: Callable[[], Mapping[str, object]],
        scripts: tuple[str, ...] = (),
    ) -> Response:
        """A page, or the document that it shows. Only one of them is built."""
        if self.wants_json:
            return JSONResponse(dict(document()))
        url = self._request.url
        address = addresses.as_json(f"{url.path}?{url.query}" if url.query else url.path)
        frame = shell(visit, section, scripts=scripts, json_address=address)
        return HTMLResponse(self.templates.render(template, page=page(), shell=frame))

    @property
    def wants_picture(self) -> bool:
        """Whether the response is a picture in a file."""
        return self._request.url.path.endswith(".svg")

    def picture(self, page: PictureFile, name: str) -> Response:
        """A picture to keep, as SVG."""
        text = self.templates.render("picture.svg", page=page)
        headers = {"Content-Disposition": f'attachment; filename="{name}.svg"'}
        return Response(text, media_type="image/svg+xml", headers=headers)

    def fragment(self, template: str, page: object) -> Response:
        """A part of a page, for a script that replaces the current one."""
        return HTMLResponse(self.templates.render(template, page=page))


AtDesk = Annotated[Desk, Depends(Desk)]
