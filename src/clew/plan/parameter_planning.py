"""Parameters as the compiler checks them."""

from collections.abc import Mapping

from clew.definitions.parameters import PLAIN_NAME, ProjectParameter
from clew.diagnostics import Problems
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.lang.conversion import given_value
from clew.lang.typed import value_to_text
from clew.plan.planned_parameters import PlannedParameter


def planned_parameters(written: Mapping[str, ProjectParameter], problems: Problems) -> tuple[PlannedParameter, ...]:
    """The parameters of a project. What is wrong with one is reported, and leaves it out."""
    found = list[PlannedParameter]()
    for name, each in written.items():
        if not PLAIN_NAME.fullmatch(name):
            problem = f'a parameter cannot be called "{name}"'
            hint = "begin with a letter or underscore; then letters, digits and underscores"
            problems.report(INVALID_VALUE.at(each.span, problem=problem, hint=hint))
            continue
        if not list(each.check()):
            allowed = tuple(value_to_text(given_value(value, each.type)) for value in each.allowed)
            default = None if each.default is None else value_to_text(given_value(each.default, each.type))
            found.append(PlannedParameter(name, each.type, default, allowed))
    return tuple(sorted(found, key=lambda parameter: parameter.name))
