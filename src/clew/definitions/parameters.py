"""Parameters of a project: typed values that a run is given, and that expressions read as `param.name`."""

import re
from collections.abc import Iterator

from clew.definitions.shapes import ANY_SCALAR, COLUMN_TYPE, TEXT, ListOf, Located, key, record
from clew.definitions.yaml_scalars import Scalar
from clew.diagnostics import ClewError, Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.lang.conversion import given_value
from clew.lang.types import Type

PLAIN_NAME = re.compile(r"[^\W\d]\w*")
"""What a parameter can be called, so that `param.name` needs no quotes."""


@record("a parameter")
class ProjectParameter(Located):
    """A value that a run of the project is given."""

    type: Type = key(COLUMN_TYPE, "The type of its values.")
    default: Scalar = key(
        ANY_SCALAR, "The value where a run gives none. Without a default, every run must give one.", default=None
    )
    allowed: tuple[Scalar, ...] = key(
        ListOf(ANY_SCALAR, "values"), "The values that a run may give; by default all of the type.", default=()
    )
    description: str = key(TEXT, "What the parameter is for.", default="")

    def check(self) -> Iterator[Diagnostic]:
        """The default and the allowed values are of the type, and the default is allowed."""
        values = list[object]()
        for name, each in [("allowed", each) for each in self.allowed] + [("default", self.default)]:
            if each is None and name == "default":
                return
            try:
                values.append(given_value(each, self.type))
            except (ClewError, ValueError, KeyError, TypeError, ArithmeticError):
                yield INVALID_VALUE.at(self.place(name), problem=f'"{each}" is not a {self.type}')
                return
        if self.allowed and values[-1] not in values[:-1]:
            yield INVALID_VALUE.at(self.place("default"), problem=f'"{self.default}" is not one of the allowed values')
