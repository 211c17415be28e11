"""Records: mappings with declared keys, read into frozen values that know their place."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from clew.diagnostics import Diagnostic, UserError, did_you_mean, nearest
from clew.diagnostics.codes.workspace import MISSING_KEY, UNKNOWN_KEY
from clew.model.nodes import MOST_PROBLEMS, MapNode, Node
from clew.model.shapes.located import DeclaredKey, Located
from clew.model.shapes.shape import JsonSchema, Shape, refused

L_co = TypeVar("L_co", bound=Located, covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Record(Shape[L_co], Generic[L_co]):
    """A mapping with the keys that a record declares."""

    declared: type[L_co]
    stand_ins: Mapping[str, object] = field(default_factory=dict)
    """Values for required keys that may be left out in this place."""

    def read(self, node: Node) -> L_co:
        """The record."""
        if not isinstance(node, MapNode):
            hint = f"write a mapping with the keys {', '.join(self.declared.keys)}" if self.declared.keys else None
            raise refused(node, self.declared.noun, hint=hint)
        keys = self.declared.keys
        values: dict[str, object] = {"node": node}
        problems: list[Diagnostic] = []
        for name, entry in node.entries.items():
            declared = keys.get(name)
            if declared is None:
                continue
            try:
                values[declared.attribute] = declared.key.shape.read(entry.value)
            except UserError as error:
                problems.extend(error.diagnostics)
        problems.extend(self._strangers(node, keys))
        if problems:
            raise UserError(*problems)
        make: Callable[..., L_co] = self.declared
        return make(**self._completed(values, keys))

    def _strangers(self, node: MapNode, keys: Mapping[str, DeclaredKey]) -> Iterator[Diagnostic]:
        """Unknown and missing keys. A missing key that an unknown one was meant to be is not reported as well."""
        where = f" in {self.declared.noun}"
        known = (
            f"the keys of {self.declared.noun} are {', '.join(keys)}" if keys else f"{self.declared.noun} have no keys"
        )
        unknown = [entry.key for name, entry in node.entries.items() if name not in keys]
        free = [name for name in keys if name not in node.entries]
        meant: set[str | None] = set()
        for stranger in unknown[:MOST_PROBLEMS]:
            meant.add(nearest(stranger.text, free))
            hint = did_you_mean(stranger.text, free) or known
            yield UNKNOWN_KEY.at(stranger.span, key=stranger.text, where=where, hint=hint)
        for name in free:
            if self._requires(keys[name]) and name not in meant:
                yield MISSING_KEY.at(node.span, key=name, where=where)

    def _requires(self, declared: DeclaredKey) -> bool:
        return declared.is_required and declared.key.same_as is None and declared.name not in self.stand_ins

    def _completed(self, values: dict[str, object], keys: Mapping[str, DeclaredKey]) -> dict[str, object]:
        for name, declared in keys.items():
            if declared.attribute not in values:
                if name in self.stand_ins:
                    values[declared.attribute] = self.stand_ins[name]
                elif declared.key.same_as is not None:
                    values[declared.attribute] = values[declared.key.same_as]
        return values

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """A reference to the definition of the record."""
        name = self.declared.__name__ + ("Inline" if self.stand_ins else "")
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = self.own_schema(definitions)
        return {"$ref": f"#/$defs/{name}"}

    def own_schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """The definition of the record itself."""
        keys = self.declared.keys
        required = [name for name, declared in keys.items() if self._requires(declared)]
        return {
            "title": self.declared.noun.removeprefix("a ").removeprefix("an "),
            "description": (self.declared.__doc__ or "").strip(),
            "type": "object",
            "properties": {name: declared.schema(definitions) for name, declared in keys.items()},
            "additionalProperties": False,
        } | ({"required": required} if required else {})
