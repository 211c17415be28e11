"""Pictures as files: SVG that looks the same in every program, with colours of its own and without links."""

from collections.abc import Mapping, Sequence

from clew.deferred import dataclass
from clew.server.pages.drawing.graph import Picture
from clew.server.pages.drawing.plan_picture import PlanPicture

_LINE, _INK, _MUTED = "#8d948f", "#1b2024", "#5d666d"


@dataclass(frozen=True, slots=True)
class Paint:
    """How a kind of box looks."""

    fill: str = "#ffffff"
    stroke: str = "#c6cac3"
    dashes: str = ""


_PLAIN = Paint()
_PAINTS: Mapping[str, Paint] = {
    "FAILED": Paint("#fbe9e6", "#a8261d"),
    "CANCELLED": Paint("#f3f4f1", "#5d666d", "2 3"),
    "PAUSED": Paint("#fbf0d9", "#855700"),
    "PENDING": Paint("#ffffff", "#855700", "4 3"),
    "APPROVED": Paint("#ffffff", "#855700", "4 3"),
    "RUNNING": Paint("#e3eef5", "#1a5a84", "4 3"),
    "aggregate": Paint("#e4f1e6"),
    "append": Paint("#e4f1e6"),
    "delete": Paint("#fbe9e6"),
    "output": Paint("#e3eef5"),
    "run": Paint("#e3eef5", "#1a5a84"),
    "version": Paint("#e4f1e6", "#2a6a3f"),
    "source": Paint("#ffffff", "#c6cac3", "3 2"),
    "dataset": Paint("#ffffff", "#c6cac3", "3 2"),
    "rest": Paint("#f3f4f1", "#f3f4f1"),
}
"""By the words of a kind; the first that fits decides."""


@dataclass(frozen=True, slots=True)
class FileBox:
    """A box with its colours."""

    x: float
    y: float
    width: float
    height: float
    title: str
    subtitle: str
    full: str
    paint: Paint


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line from box to box."""

    path: str
    dashes: str


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A picture for a file."""

    title: str
    width: float
    height: float
    boxes: tuple[FileBox, ...]
    lines: tuple[FileLine, ...]
    line: str = _LINE
    ink: str = _INK
    muted: str = _MUTED


def graph_file(picture: Picture, title: str) -> PictureFile:
    """A graph as a file."""
    boxes = tuple(
        FileBox(
            box.x,
            box.y,
            box.width,
            box.height,
            box.title,
            box.subtitle,
            f"{box.node.title}\n{box.node.subtitle}".strip(),
            _paint(box.node.kind),
        )
        for box in picture.boxes
    )
    return PictureFile(title, picture.width, picture.height, boxes, _lines([(each.path, "") for each in picture.lines]))


def plan_file(picture: PlanPicture, title: str) -> PictureFile:
    """The picture of a plan as a file."""
    boxes = tuple(
        FileBox(box.x, box.y, box.width, box.height, box.title, box.subtitle, box.full, _paint(box.kind))
        for box in picture.boxes
    )
    lines = [(each.path, "3 3" if each.kind == "join" else "") for each in picture.lines]
    return PictureFile(title, picture.width, picture.height, boxes, _lines(lines))


def _paint(kind: str) -> Paint:
    return next((paint for word, paint in _PAINTS.items() if word in kind.split()), _PLAIN)


def _lines(drawn: Sequence[tuple[str, str]]) -> tuple[FileLine, ...]:
    return tuple(FileLine(path, dashes) for path, dashes in drawn)
