"""`clew doctor`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import FAILED
from clew.cli.options import command, environment_option, option, workspace_option
from clew.cli.output import bad, good, say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.api.findings import Symptom


@command
@option("starts_spark", "--start", is_flag=True, help="Also start Spark, and let it write to the storage root.")
@environment_option
@workspace_option
def doctor(context: click.Context, starts_spark: bool, environment: str | None, workspace: Path | None) -> None:
    """Look at everything that a run needs.

    Python, Spark, Java, jars, secrets, storage, database, clock and permissions, each with a remedy if something is
    wrong. Outside of a workspace, only the machine is looked at. Ends with 1 if something will not work.
    """
    from clew.api.doctor import examine

    session = context.ensure_object(Session)
    found = examine(workspace or Path(), environment, starts_spark=starts_spark)
    if session.wants_json:
        write_json(found.to_json())
    else:
        width = max(len(finding.subject) for finding in found.findings)
        for finding in found.findings:
            _print(finding, width)
    if not found.is_well:
        raise click.exceptions.Exit(FAILED)


def _print(finding: "Symptom", width: int) -> None:
    word = f"{finding.health.value:<7}"
    shown = {"ok": good(word), "failed": bad(word)}.get(finding.health.value, word)
    code = f"{finding.code}: " if finding.code else ""
    say(f"{shown}  {finding.subject:<{width}}  {code}{finding.found}")
    if finding.remedy:
        say(f"{'':<{9 + width}}  {finding.remedy}")
