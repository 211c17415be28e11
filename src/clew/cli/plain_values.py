"""Text, paths and flags on the command line, taken as they are typed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer._coercion import RuntimeParam
from typer.core import TyperArgument, TyperGroup, TyperOption

_PLAIN: Mapping[object, Callable[[Any], object]] = {str: str, Path: Path, bool: bool}


@dataclass(frozen=True)
class _AsTyped(RuntimeParam):
    """A value that needs no checking: every text is one."""

    def _coerce_value(self, value: Any, param: object, ctx: object) -> object:  # noqa: ANN401, ARG002 - as Typer has it
        return _PLAIN[self.annotation](value)


def commands_of(app: typer.Typer) -> TyperGroup:
    """The commands of an app, ready to run.

    Typer converts every value with pydantic, which takes a tenth of a second to import, as long as everything else
    that stands between a command and its work. Text, paths and flags need no conversion, so these go without.
    """
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)  # noqa: S101 - an app with a callback is a group
    for command in (group, *group.commands.values()):
        for parameter in command.get_params(typer.Context(command, **command.context_settings)):
            if isinstance(parameter, TyperArgument | TyperOption) and parameter.type_descriptor.annotation in _PLAIN:
                described = parameter.type_descriptor
                parameter._runtime_param = _AsTyped(described.parameter_info, described.annotation)  # noqa: SLF001
    return group
