"""The difference between two totals as a picture: the first, what each cause adds or takes, and the second."""

from collections.abc import Sequence
from decimal import Decimal

from clew.deferred import dataclass

HEIGHT = 190
"""Of the room for bars, in units of the picture. Above and below it stand texts."""
_STEP, _WIDE = 150, 92
_MARGIN = 24
_LONGEST = 21
"""Characters of a label that fit below a bar."""
_CUT_FROM = Decimal("0.4")
"""Where the causes are a smaller part of the totals, the axis begins just below them, or they could not be seen."""


@dataclass(frozen=True, slots=True)
class BridgeBar:
    """A total, or what a cause does to it."""

    x: int
    y: float
    width: int
    height: float
    kind: str
    """end, created (it adds) or deleted (it takes away)."""
    label: str
    title: str
    amount: str


@dataclass(frozen=True, slots=True)
class BridgePicture:
    """The bars with the lines that join them."""

    bars: tuple[BridgeBar, ...]
    joints: tuple[tuple[int, int, float], ...]
    """Lines from the end of a bar to the beginning of the next: from x, to x, y."""
    width: int
    height: int
    described: str
    is_cut: bool
    """Whether the axis does not begin at zero."""


def bridge_picture(first: Decimal, causes: Sequence[tuple[str, Decimal]], second: Decimal) -> BridgePicture:
    """A waterfall from one total to another. `causes` have a title and what they add."""
    levels, at = [first], first
    for _, amount in causes:
        at += amount
        levels.append(at)
    low, high = min(*levels, second), max(*levels, second)
    is_cut = low * high > 0 and high - low < _CUT_FROM * max(abs(low), abs(high))
    beyond = (high - low) / 3
    bottom, top = (low - beyond, high + beyond) if is_cut else (min(low, Decimal(0)), max(high, Decimal(0)))
    unit = (top - bottom) or Decimal(1)

    def y(value: Decimal) -> float:
        return round(_MARGIN + float((top - value) / unit) * HEIGHT, 1)

    base = (bottom if low > 0 else top) if is_cut else Decimal(0)
    spans = [(base, first, "end", "First run", f"{first:,f}")]
    for (title, amount), start in zip(causes, levels, strict=False):
        spans.append((start, start + amount, "created" if amount >= 0 else "deleted", title, f"{amount:+,f}"))
    spans.append((base, second, "end", "Second run", f"{second:,f}"))
    bars = tuple(_bar(number, span, y(span[0]), y(span[1])) for number, span in enumerate(spans))
    joints = tuple(
        (bar.x + bar.width, following.x, y(level))
        for bar, following, level in zip(bars, bars[1:], levels, strict=False)
    )
    said = "; ".join(f"{title} {amount:+,f}" for title, amount in causes) or "nothing"
    described = f"From {first:,f} to {second:,f} by {len(causes)} {'cause' if len(causes) == 1 else 'causes'}: {said}"
    return BridgePicture(bars, joints, len(bars) * _STEP, HEIGHT + 3 * _MARGIN, described, is_cut)


def _bar(number: int, span: tuple[Decimal, Decimal, str, str, str], start: float, end: float) -> BridgeBar:
    _, _, kind, title, amount = span
    label = title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1]}…"
    x = number * _STEP + (_STEP - _WIDE) // 2
    return BridgeBar(x, min(start, end), _WIDE, max(1.5, round(abs(end - start), 1)), kind, label, title, amount)
