"""What Clew does today, on the sample workspace: every command as you would type it, with its answer.

`make demo` runs this. It works in a folder of its own, which is removed in the end.
"""

import csv
import shlex
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import clew
from clew.lang import evaluate
from clew.plan.steps import UpdateStep

CLEW = Path(sys.executable).with_name("clew")


def main() -> None:
    """The whole demonstration."""
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
        home = Path(folder)
        ledger = home / "ledger"
        say("A workspace with the month close of a general ledger: journal lines of three months in four currencies,")
        say("exchange rates with one that was restated, budgets, two projects and their scenarios.")
        clew_command("init ledger", home)
        say("Is it right? Every file is read and every expression is compiled. No Spark is started for that.")
        clew_command("check", ledger)
        say("What would a run do? A plan can be reviewed and approved without reading YAML.")
        clew_command("plan gl-close", ledger)
        say("The points at which a run can keep the rows for analysis have names of their own:")
        clew_command("plan gl-close --breakpoints", ledger)
        say("Now somebody mistypes a column:")
        shell("sed -i.bak 's/amount_local \\* fx.rate/amount_lcoal * fx.rate/' fragments/fx-to-usd.yaml", ledger)
        clew_command("check gl-close", ledger, expected=1)
        shell("mv fragments/fx-to-usd.yaml.bak fragments/fx-to-usd.yaml", ledger)
        clew_command("check gl-close", ledger)
        say("Expressions run in plain Python too. This is the conversion of step 10, on one line of January's file:")
        convert_one_line(ledger)
    say("That is what works today: definitions, the expression language, checking and planning. Running plans on Spark")
    say("and following a value back to its rows are being built; README.md says how far they are.")


def convert_one_line(ledger: Path) -> None:
    """Evaluate the expression of a step on a row of the data."""
    plan = clew.open(ledger).plan("gl-close")
    [step] = [step for step in plan.steps if isinstance(step, UpdateStep) and step.name == "Convert to USD"]
    expression = step.assignments[0].value.text
    line = first(ledger / "data" / "journal" / "journal_2026-01.csv", journal_id="JE-00231", line_number="2")
    rate = first(
        ledger / "data" / "fx_rates.csv",
        from_currency=line["currency"],
        to_currency="USD",
        rate_type="closing",
        _period_from="2026-01-01",
    )
    row = {"amount_local": Decimal(line["amount_local"]), "fx.rate": Decimal(rate["rate"])}
    say("", ">>> from decimal import Decimal", ">>> from clew.lang import evaluate")
    say(f">>> evaluate({expression!r}, {row!r})", repr(evaluate(expression, row)), "")
    say(f"{line['journal_id']}/{line['line_number']}: {line['amount_local']} {line['currency']} at {rate['rate']}.", "")


def first(file: Path, **wanted: str) -> dict[str, str]:
    """The first row of a CSV file with these values."""
    with file.open(encoding="utf-8", newline="") as rows:
        return next(row for row in csv.DictReader(rows) if wanted.items() <= row.items())


def clew_command(arguments: str, folder: Path, *, expected: int = 0) -> None:
    """Show a command of Clew and run it."""
    say("", f"$ clew {arguments}")
    run([str(CLEW), *shlex.split(arguments)], folder, expected)
    if arguments.startswith("init"):
        say("$ cd ledger")
    say()


def shell(command: str, folder: Path) -> None:
    """Show a command of the shell and run it."""
    say(f"$ {command}")
    run(shlex.split(command), folder, expected=0)


def run(command: list[str], folder: Path, expected: int) -> None:
    """Run a command; a code other than the expected one ends the demonstration."""
    done = subprocess.run(command, cwd=folder, check=False)
    if done.returncode != expected:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode} instead of {expected}")


def say(*lines: str) -> None:
    """Print lines, an empty one for none, before any command prints its own."""
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
