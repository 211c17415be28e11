"""References to datasets, by id or name and version."""

from clew.definitions.nodes import Node
from clew.definitions.shapes import NAME, JsonSchema, Located, Record, Shape, TextOr, Whole, key, record


@record("a reference to a dataset")
class DatasetRef(Located):
    """A dataset by its id or name."""

    dataset_id: str = key(NAME, "The id or name of the dataset.")
    dataset_version: int | None = key(Whole(1), "The version; by default the latest active one.", default=None)


class _ByName(Shape[DatasetRef]):
    """A reference that is only an id or name."""

    def read(self, node: Node) -> DatasetRef:
        """The reference."""
        return DatasetRef(dataset_id=NAME.read(node), node=node)

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """A string."""
        return NAME.schema(definitions)


DATASET_REF: TextOr[DatasetRef, DatasetRef] = TextOr(_ByName(), Record(DatasetRef))
"""An id or name, or a mapping with it and a version."""
