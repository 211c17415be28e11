"""How the values of a column are hidden where the column itself is kept."""

from enum import StrEnum

from clew.deferred import dataclass
from clew.definitions.nodes import MapNode, Node, ScalarNode
from clew.definitions.shapes import JsonSchema, Shape, Whole, refused


class MaskKind(StrEnum):
    """What is left of a value."""

    HASH = "hash"
    """A digest: equal values stay equal."""
    REDACT = "redact"
    """Nothing but whether there was one."""
    KEEP_LAST = "keep_last"
    """Its last characters."""


@dataclass(frozen=True, slots=True)
class Mask:
    """A way to hide values."""

    kind: MaskKind
    characters: int = 0
    """How many are kept, where some are."""

    def __str__(self) -> str:
        return f"{self.kind}({self.characters})" if self.kind is MaskKind.KEEP_LAST else str(self.kind)

    def to_data(self) -> str | dict[str, int]:
        """As it is written."""
        return {self.kind.value: self.characters} if self.kind is MaskKind.KEEP_LAST else self.kind.value


class _MaskShape(Shape[Mask]):
    """`hash`, `redact`, or `{keep_last: 4}`."""

    def read(self, node: Node) -> Mask:
        """The mask."""
        if isinstance(node, ScalarNode) and node.text in {MaskKind.HASH, MaskKind.REDACT}:
            return Mask(MaskKind(node.text))
        if isinstance(node, MapNode) and node.entries.keys() == {"keep_last"}:
            return Mask(MaskKind.KEEP_LAST, Whole(1, 100).read(node.entries["keep_last"].value))
        raise refused(node, "hash, redact or {keep_last: N}")

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """A word or a mapping."""
        kept = {
            "type": "object",
            "properties": {"keep_last": Whole(1, 100).schema(definitions) | {"description": "The characters to keep."}},
            "required": ["keep_last"],
            "additionalProperties": False,
        }
        return {"anyOf": [{"enum": ["hash", "redact"]}, kept]}


MASK = _MaskShape()
