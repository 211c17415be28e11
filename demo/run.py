"""A tour of Clew on the sample workspace: every command as you would type it, with its output.

`make demo` runs this, in a temporary folder.
"""

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

CLEW = Path(sys.executable).with_name("clew")


def main() -> None:
    """Run the whole demo."""
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
        home = Path(folder)
        ledger = home / "ledger"
        say("A sample workspace, the month-end close of a general ledger: three months of journal lines,")
        say("exchange rates for four currencies (one restated), budgets, two projects, and scenarios that test them.")
        clew_command("init ledger", home)
        say("Is it valid? Clew reads every file and compiles every expression, without starting Spark.")
        clew_command("check", ledger)
        say("What would a run do? Reviewers can approve the plan without reading YAML.")
        clew_command("plan gl-close", ledger)
        say("Now with a typo in a column name:")
        shell("sed -i.bak 's/amount_local \\* fx.rate/amount_lcoal * fx.rate/' fragments/fx-to-usd.yaml", ledger)
        clew_command("check gl-close", ledger, expected=1)
        shell("mv fragments/fx-to-usd.yaml.bak fragments/fx-to-usd.yaml", ledger)
        run_and_follow(ledger)


def run_and_follow(ledger: Path) -> None:
    """Run both projects on Spark, then trace numbers back to their origin without Spark."""
    say("Run the month-end close. Spark takes a few seconds to start:")
    clew_command("run gl-close --period 2026-01", ledger)
    close = latest_run(ledger, "gl-close")
    say("The totals for January, as finance would check them. Questions like this one do not start Spark.")
    clew_command(f"""trace {close} --where 'row_kind = "total"'""", ledger)
    say("What happened to one journal line?")
    clew_command(f"""trace {close} --where 'journal_id = "JE-00231" AND line_number = 2'""", ledger)
    say("Why are expenses this high? Clew recalculates every expression on the way down to the file.")
    clew_command(f"""explain {close} --where 'row_kind = "total" AND account_type = "expense"' total_usd""", ledger)
    say("Why is entry JE-00099 missing?")
    clew_command(f"""explain {close} --why-not 'journal_id = "JE-00099"'""", ledger)
    say("A second project uses the closed ledger as its input:")
    clew_command("run group-report --period 2026-01", ledger)
    report = latest_run(ledger, "group-report")
    say("An explanation goes through both projects, down to the lines of the journal:")
    where = 'row_kind = "report" AND cost_center = "C110" AND account_type = "expense"'
    clew_command(f"explain {report} --where '{where}' actual_usd", ledger)
    show_pages(ledger)


def show_pages(ledger: Path) -> None:
    """The same in a browser. In a terminal, serve until Ctrl-C; otherwise stop after printing the link."""
    say("Auditors may prefer a browser. The web pages show the same: click a number to see where it came from.")
    arguments = "serve --no-worker" if sys.stdout.isatty() else "serve --no-worker --port 0"
    say("", f"$ clew {arguments}")
    command = [str(CLEW), *shlex.split(arguments)]
    with subprocess.Popen(command, cwd=ledger, stdout=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stdout or ():
                say(line.rstrip("\n"))
                if line.startswith("open: ") and not sys.stdout.isatty():
                    server.terminate()
        except KeyboardInterrupt:
            server.wait()


def latest_run(ledger: Path, project: str) -> str:
    """The first characters of the id of a project's newest run."""
    listed = subprocess.run(
        [str(CLEW), "runs", "--project", project, "--json"], cwd=ledger, check=True, capture_output=True, text=True
    )
    return str(json.loads(listed.stdout)["runs"][0]["run_id"])[:8]


def clew_command(arguments: str, folder: Path, *, expected: int = 0) -> None:
    """Print a clew command and run it."""
    say("", f"$ clew {arguments}")
    run([str(CLEW), *shlex.split(arguments)], folder, expected)
    if arguments.startswith("init"):
        say("$ cd ledger")
    say()


def shell(command: str, folder: Path) -> None:
    """Print a shell command and run it."""
    say(f"$ {command}")
    run(shlex.split(command), folder, expected=0)


def run(command: list[str], folder: Path, expected: int) -> None:
    """Run a command; stop the demo if it exits with another code than expected."""
    done = subprocess.run(command, cwd=folder, check=False)
    if done.returncode != expected:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode} instead of {expected}")


def say(*lines: str) -> None:
    """Print lines, or an empty line, and flush, so that output stays in order."""
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
