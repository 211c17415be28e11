"""Expressions as users write them in files: text in which every character knows its place."""

from dataclasses import dataclass, field

from clew.diagnostics import Span
from clew.model.nodes import NOWHERE, Node, ScalarNode
from clew.model.scalar_places import characters


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """The text of an expression. Two are equal when their text is, wherever it stands."""

    value: str
    node: Node = field(default=NOWHERE, repr=False, compare=False)

    def __str__(self) -> str:
        return self.value

    def span(self, start: int, end: int) -> Span:
        """The place in the file of `value[start:end]`, as far as it lies in one line."""
        written = characters(self.node) if isinstance(self.node, ScalarNode) else None
        if written is None or not written.decoded:
            return self.node.span
        if start >= len(written.starts):
            return self.node.source.span(written.ends[-1], written.ends[-1])
        last = min(max(start, end - 1), len(written.ends) - 1)
        return self.node.source.span(written.starts[start], written.ends[last])
