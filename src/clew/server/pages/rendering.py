"""Templates: everything that is put into one is escaped, and a name that is not there is an error."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Never
from uuid import uuid4

from jinja2 import Environment, FileSystemLoader, Undefined
from markupsafe import Markup

from clew.server.pages import addresses

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
_DIGITS = 12


class _Strict(Undefined):
    """A missing name is an error; an `if` within an expression may go without its `else`."""

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
        """Jinja, set up so that nothing reaches a page unescaped."""
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
        """The address of a style, script or image. It changes with the content, so browsers may keep what they have."""
        return f"/static/{name}?v={self._versions[name]}"

    @cached_property
    def style(self) -> Markup:
        """The stylesheet, for a page that has to carry it: it is ours, and stands in a page as it is."""
        text = (STATIC / "clew.css").read_text(encoding="utf-8")
        return Markup(f"<style>\n{text}</style>")  # noqa: S704 - a file of this package

    def render(self, name: str, **context: object) -> str:
        """A template with what it shows."""
        return self.environment.get_template(name).render(**context)
