"""How a page is answered: as HTML for people, as JSON for programs, from the same reading."""

from collections.abc import Callable, Mapping
from typing import Annotated

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from clew.server.access.visit import Visit
from clew.server.errors import is_for_programs
from clew.server.pages import addresses
from clew.server.pages.rendering import Templates
from clew.server.pages.shell import shell


class Desk:
    """Writes the answer to one request."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def templates(self) -> Templates:
        """The templates of the application."""
        found: Templates = self._request.app.state.templates
        return found

    @property
    def wants_json(self) -> bool:
        """Whether the answer goes to a program."""
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
        """A page, or the document that it shows. Only one of the two is made."""
        if self.wants_json:
            return JSONResponse(dict(document()))
        url = self._request.url
        address = addresses.as_json(f"{url.path}?{url.query}" if url.query else url.path)
        frame = shell(visit, section, scripts=scripts, json_address=address)
        return HTMLResponse(self.templates.render(template, page=page(), shell=frame))


AtDesk = Annotated[Desk, Depends(Desk)]
