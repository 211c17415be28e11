"""Fragments: operations that projects share."""

from collections.abc import Mapping

from clew.model.expression_text import ExpressionText
from clew.model.operations import OPERATION, Operation, Use
from clew.model.shapes import EXPRESSION, NAME, SLUG, TEXT, Definition, ListOf, MapOf, key, record


@record("a fragment")
class Fragment(Definition):
    """A named list of operations that projects and other fragments use."""

    id: str = key(SLUG, "The id, unique among fragments.")
    name: str = key(NAME, "The name; the id where left out.", same_as="id")
    description: str = key(TEXT, "What the fragment is for.", default="")
    selectors: Mapping[str, ExpressionText] = key(
        MapOf(EXPRESSION, "expressions"),
        "Its own named selectors, seen before those of the project.",
        default_factory=dict,
    )
    operations: tuple[Operation | Use, ...] = key(
        ListOf(OPERATION, "operations", at_least=1), "The operations, and other fragments in place of operations."
    )
