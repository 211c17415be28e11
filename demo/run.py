"""What Clew does today, on the sample workspace: every command as you would type it, with its answer.

`make demo` runs this. It works in a folder of its own, which is removed in the end.
"""

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

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
        say("Now somebody mistypes a column:")
        shell("sed -i.bak 's/amount_local \\* fx.rate/amount_lcoal * fx.rate/' fragments/fx-to-usd.yaml", ledger)
        clew_command("check gl-close", ledger, expected=1)
        shell("mv fragments/fx-to-usd.yaml.bak fragments/fx-to-usd.yaml", ledger)
        run_and_follow(ledger)


def run_and_follow(ledger: Path) -> None:
    """Run both projects on Spark, then follow numbers back to where they came from, without it."""
    say("The month close on Spark, which takes a few seconds to start:")
    clew_command("run gl-close --period 2026-01", ledger)
    close = latest_run(ledger, "gl-close")
    say("The totals of January, as finance would check them. From here on nothing starts Spark.")
    clew_command(f"""trace {close} --where 'row_kind = "total"'""", ledger)
    say("What happened to one line of the journal?")
    clew_command(f"""trace {close} --where 'journal_id = "JE-00231" AND line_number = 2'""", ledger)
    say("Why are the expenses what they are? Every expression is calculated again on the way down to the file.")
    clew_command(f"""explain {close} --where 'row_kind = "total" AND account_type = "expense"' total_usd""", ledger)
    say("Where did the entry JE-00099 go?")
    clew_command(f"""explain {close} --why-not 'journal_id = "JE-00099"'""", ledger)
    say("Another project takes the closed ledger as its input:")
    clew_command("run group-report --period 2026-01", ledger)
    report = latest_run(ledger, "group-report")
    say("An explanation goes through both projects, down to the lines of the journal:")
    where = 'row_kind = "report" AND cost_center = "C110" AND account_type = "expense"'
    clew_command(f"explain {report} --where '{where}' actual_usd", ledger)
    show_pages(ledger)


def show_pages(ledger: Path) -> None:
    """The same in a browser. At a terminal the pages stay until Ctrl-C; elsewhere it is left at showing the link."""
    say("An auditor does not type commands. The pages show the same: click a number to see where it came from.")
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
    """The beginning of the id of a project's newest run."""
    listed = subprocess.run(
        [str(CLEW), "runs", "--project", project, "--json"], cwd=ledger, check=True, capture_output=True, text=True
    )
    return str(json.loads(listed.stdout)["runs"][0]["run_id"])[:8]


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
