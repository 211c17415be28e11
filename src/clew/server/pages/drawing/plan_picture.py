"""A plan as a picture: steps from top to bottom, inputs on the left, outputs on the right."""

from clew.deferred import dataclass
from clew.plan import Plan
from clew.plan.datasets import DatasetUse
from clew.plan.operations import Destination, OutputStep, Step

_LEFT, _SPINE, _RIGHT = 12.0, 286.0, 700.0
_SIDE_WIDTH, _STEP_WIDTH, _OUT_WIDTH = 200.0, 350.0, 250.0
_ROW, _GAP, _BOX = 46.0, 14.0, 44.0
_LONGEST_TITLE, _LONGEST_SIDE, _LONGEST_DOES = 40, 29, 56


@dataclass(frozen=True, slots=True)
class PlanBox:
    """A box: a step, a dataset that it reads, or a place that it writes to."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str
    subtitle: str
    full: str
    """The full text, shown as a tooltip."""
    sets: tuple[str, ...] = ()
    """The columns that a step sets or adds."""
    dataset: str | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A flow of rows, or a lookup in another dataset."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class PlanPicture:
    """A plan, ready to draw."""

    boxes: tuple[PlanBox, ...]
    lines: tuple[PlanLine, ...]
    width: float
    height: float


def plan_picture(plan: Plan) -> PlanPicture:
    """Draw a plan."""
    boxes, lines = list[PlanBox](), list[PlanLine]()
    y = 12.0
    boxes.append(_dataset(plan.input, "input", _SPINE, y, _STEP_WIDTH))
    previous = y + _BOX
    y += _ROW + _GAP + 8
    for step in plan.steps:
        height = max(_BOX, len(step.datasets) * (_BOX + 6) - 6)
        top = y + (height - _BOX) / 2
        middle, centre = top + _BOX / 2, _SPINE + _STEP_WIDTH / 2
        lines.append(PlanLine("flow", f"M{centre} {previous}V{top}"))
        boxes.append(_step(step, top))
        for index, each in enumerate(step.datasets):
            side = y + index * (_BOX + 6)
            boxes.append(_dataset(each.use, each.role, _LEFT, side, _SIDE_WIDTH))
            lines.append(_across(_LEFT + _SIDE_WIDTH, side + _BOX / 2, _SPINE, middle, "join"))
        if isinstance(step, OutputStep):
            boxes.append(_output(step, top))
            lines.append(PlanLine("out", f"M{_SPINE + _STEP_WIDTH} {middle}H{_RIGHT}"))
        previous = top + _BOX
        y += height + _GAP
    return PlanPicture(tuple(boxes), tuple(lines), _RIGHT + _OUT_WIDTH + 12, y)


def _step(step: Step, y: float) -> PlanBox:
    selector = f"\nrows: {step.selector.text}" if step.selector else ""
    return PlanBox(
        kind=f"step {step.type}",
        x=_SPINE,
        y=y,
        width=_STEP_WIDTH,
        height=_BOX,
        title=_cut(f"{step.seq}  {step.name}", _LONGEST_TITLE),
        subtitle=_cut(step.summary, _LONGEST_DOES),
        full=f"{step.seq} {step.name} ({step.type}){selector}\n{step.summary}",
        sets=step.columns_set,
        seq=step.seq,
    )


def _dataset(use: DatasetUse, role: str, x: float, y: float, width: float) -> PlanBox:
    version = f" v{use.pinned_version}" if use.pinned_version else ""
    columns = ", ".join(column.name for column in use.columns)
    return PlanBox(
        kind="dataset",
        x=x,
        y=y,
        width=width,
        height=_BOX,
        title=_cut(f"{use.name}{version}", _LONGEST_SIDE if width == _SIDE_WIDTH else _LONGEST_TITLE),
        subtitle=role,
        full=f"{use.name}{version}, {role}\n{columns}",
        dataset=use.dataset_id,
    )


def _output(step: OutputStep, y: float) -> PlanBox:
    place = _place(step.destination)
    registers = f"dataset {step.registers}" if step.registers else step.destination.format or ""
    return PlanBox(
        kind="place",
        x=_RIGHT,
        y=y,
        width=_OUT_WIDTH,
        height=_BOX,
        title=_cut(place, 34),
        subtitle=_cut(registers, 40),
        full=f"{place}\n{registers}\n{', '.join(step.columns)}",
        dataset=step.registers,
    )


def _place(destination: Destination) -> str:
    return destination.path or (f"table {destination.table}" if destination.table else destination.datasource_id or "")


def _across(x1: float, y1: float, x2: float, y2: float, kind: str) -> PlanLine:
    middle = (x1 + x2) / 2
    return PlanLine(kind, f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
