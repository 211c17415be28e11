"""What users write for a delete."""

from typing import Literal

from clew.definitions.operations.base import OperationBase
from clew.definitions.shapes import ConstantShape, Located, Record, key, record


@record("the arguments of a delete")
class DeleteArguments(Located):
    """A delete takes no arguments: its selector says which rows."""


@record("a delete operation")
class Delete(OperationBase):
    """Marks the selected rows as deleted."""

    type: Literal["delete"] = key(ConstantShape("delete"), "Marks the selected rows as deleted.")
    arguments: DeleteArguments = key(Record(DeleteArguments), "Nothing.", default_factory=DeleteArguments)
