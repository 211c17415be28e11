"""The catalogue of everything that can be wrong, by family."""

from collections.abc import Mapping

from clew.diagnostics.codes.captures import CAPTURE_CODES
from clew.diagnostics.codes.changes import CHANGE_CODES
from clew.diagnostics.codes.commands import COMMAND_CODES
from clew.diagnostics.codes.engine import ENGINE_CODES
from clew.diagnostics.codes.language import LANGUAGE_CODES
from clew.diagnostics.codes.project import PROJECT_CODES
from clew.diagnostics.codes.questions import QUESTION_CODES
from clew.diagnostics.codes.runs import RUN_CODES
from clew.diagnostics.codes.scenarios import SCENARIO_CODES
from clew.diagnostics.codes.server import SERVER_CODES
from clew.diagnostics.codes.trace import TRACE_CODES
from clew.diagnostics.codes.tracelink import TRACELINK_CODES
from clew.diagnostics.codes.workspace import WORKSPACE_CODES
from clew.diagnostics.diagnostic import Code

FAMILIES: Mapping[str, tuple[Code, ...]] = {
    "Expressions": LANGUAGE_CODES,
    "Workspace files": WORKSPACE_CODES,
    "Projects": PROJECT_CODES,
    "Runs": RUN_CODES,
    "Data of runs": ENGINE_CODES,
    "Trace and explain": TRACE_CODES,
    "Questions": QUESTION_CODES,
    "Changes between runs": CHANGE_CODES,
    "Scenarios": SCENARIO_CODES,
    "Captures": CAPTURE_CODES,
    "TraceLink": TRACELINK_CODES,
    "Server": SERVER_CODES,
    "Commands": COMMAND_CODES,
}
"""Codes under the heading that the reference page gives them."""

CATALOGUE: Mapping[str, Code] = {code.name: code for codes in FAMILIES.values() for code in codes}
