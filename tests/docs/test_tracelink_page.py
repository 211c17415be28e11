"""docs/tracelink.md: what has to be documented is, and its example runs."""

import re
from pathlib import Path

import clew
import clew.store.tracelink.trace_tables
from clew.sample import write_sample
from clew.store.schema import metadata

PAGE = (Path(__file__).parents[2] / "docs" / "tracelink.md").read_text(encoding="utf-8")


def test_the_page_says_what_a_new_epoch_means_for_trace_ids() -> None:
    assert re.search(r"\*\*Epochs\.\*\*.*Trace ids continue across epochs", PAGE, re.DOTALL)


def test_every_table_of_tracelink_is_named() -> None:
    tables = [name for name in metadata.tables if name.startswith(("trace_", "frames", "node_"))]
    assert len(tables) == 6
    assert all(f"`{name}`" in PAGE for name in tables)


def test_the_example_runs(tmp_path: Path) -> None:
    write_sample(tmp_path / "ledger")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {"workspace": clew.open(tmp_path / "ledger")}
    exec(example, names)
    assert len(names["parents"]) == 3  # type: ignore[arg-type]
