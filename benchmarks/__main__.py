"""Runs every benchmark, prints its figures, and writes them to benchmarks/RESULTS.md with the machine they are from.

`make bench` runs all; `python -m benchmarks lang check` only those, and leaves the other sections as they are.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from benchmarks.figure import Figure

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"


def main() -> None:
    known = benchmarks()
    wanted = sys.argv[1:] or known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    for name in wanted:
        write({**{each: text for each, text in earlier().items() if each in known}, name: section(name)})
    print(f"written to {RESULTS.relative_to(HERE.parent)}")


def benchmarks() -> list[str]:
    """The names of all benchmarks."""
    return [path.stem.removesuffix("_bench") for path in sorted(HERE.glob("*_bench.py"))]


def earlier() -> dict[str, str]:
    """The sections that are written already, by name."""
    if not RESULTS.exists():
        return {}
    pieces = RESULTS.read_text(encoding="utf-8").split("\n## ")[1:]
    return {piece.partition("\n")[0]: f"## {piece.rstrip()}\n" for piece in pieces}


def write(sections: Mapping[str, str]) -> None:
    """After each section, so that nothing measured is lost when a later one fails."""
    parts = [*heading(sections), *(sections[name] for name in sorted(sections))]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")


def section(name: str) -> str:
    print(f"{name} ...", flush=True)
    module = import_module(f"benchmarks.{name}_bench")
    busy = os.getloadavg()[0]
    figures: list[Figure] = module.measure()
    for figure in figures:
        print(f"  {figure.name:<72} {value_of(figure):>16}  {bound_of(figure)}".rstrip(), flush=True)
    about = (module.__doc__ or "").strip()  # all of it: what the figures include, and what they leave out
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; load of the machine at the start {busy:.1f}."
    rows = [f"| {figure.name} | {value_of(figure)} | {bound_of(figure)} |" for figure in figures]
    return "\n".join([f"## {name}", "", about, "", when, "", "| | measured | bound |", "|---|---:|---|", *rows, ""])


def value_of(figure: Figure) -> str:
    return f"{figure.value:,.2f} {figure.unit}"


def bound_of(figure: Figure) -> str:
    bounds = list[str]()
    if figure.at_most is not None:
        bounds.append(f"at most {figure.at_most:,g}: {'kept' if figure.value <= figure.at_most else 'MISSED'}")
    if figure.at_least is not None:
        bounds.append(f"at least {figure.at_least:,g}: {'kept' if figure.value >= figure.at_least else 'MISSED'}")
    return ", ".join(bounds)


def heading(measured: Iterable[str]) -> Iterator[str]:
    yield "# Benchmarks\n"
    yield "Written by `make bench`. Ratios travel between machines, times do not.\n"
    yield "A section holds for the day that it names; the changelog says what has become faster since."
    yield f"{without_figures(measured)}\n"
    yield f"- machine: {os.cpu_count()} cores, {memory()}, {platform.system()} {platform.machine()}"
    yield f"- Python {platform.python_version()}, {java()}\n"


def without_figures(measured: Iterable[str]) -> str:
    """Which benchmarks have no section yet, in a sentence."""
    missing = sorted({*benchmarks()} - {*measured})
    return f"Benchmarks without figures so far: {', '.join(missing)}." if missing else "All benchmarks have figures."


def memory() -> str:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return f"{pages * size / 2**30:.0f} GB of memory"


def java() -> str:
    try:
        answer = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no Java"
    return answer.stderr.partition("\n")[0].replace('"', "")


if __name__ == "__main__":
    main()
