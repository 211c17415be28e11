"""Text, paths, flags and whole numbers on the command line, taken as they are typed."""

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


@dataclass(frozen=True)
class _WholeNumber(RuntimeParam):
    """A number without a fraction, within the bounds that its option declares."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> object:  # noqa: ANN401 - as Typer has it
        try:
            number = int(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not a whole number.", ctx=ctx, param=param) from None
        least, most = self.parameter_info.min, self.parameter_info.max
        if least is not None and number < least:
            raise typer.BadParameter(f"{number} is less than {least:g}.", ctx=ctx, param=param)
        if most is not None and number > most:
            raise typer.BadParameter(f"{number} is more than {most:g}.", ctx=ctx, param=param)
        return number


def commands_of(app: typer.Typer) -> TyperGroup:
    """The commands of an app, ready to run.

    Typer converts every value with pydantic, which takes a tenth of a second to import, as long as everything else
    that stands between a command and its work. Text, paths, flags and whole numbers go without.
    """
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)  # noqa: S101 - an app with a callback is a group
    for command in (group, *group.commands.values()):
        for parameter in command.get_params(typer.Context(command, **command.context_settings)):
            if isinstance(parameter, TyperArgument | TyperOption):
                described = parameter.type_descriptor
                kind = _WholeNumber if described.annotation is int else _AsTyped
                if described.annotation is int or described.annotation in _PLAIN:
                    parameter._runtime_param = kind(described.parameter_info, described.annotation)  # noqa: SLF001
    return group
