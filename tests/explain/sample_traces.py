"""The sample's projects, interpreted for January and written as runs leave them."""

from datetime import date
from pathlib import Path

from clew.definitions import load_workspace
from clew.plan import Plan, compile_workspace
from tests.plan.plan_interpreter import Cells
from tests.sample.sample_ledger import SAMPLE, open_ledger
from tests.trace.recorded_interpretation import Recorded
from tests.trace.trace_writer import Style, Writer

MONTH = "2026-01"
_TABLES = {
    "journal-lines": "journal_lines",
    "accounts": "accounts",
    "cost-centers": "cost_centers",
    "fx-rates": "fx_rates",
    "budgets": "budgets",
}


def sample_plans() -> dict[str, Plan]:
    return dict(compile_workspace(load_workspace(SAMPLE).workspace).plans)


def sample_data() -> dict[str, list[Cells]]:
    with open_ledger() as ledger:
        return {dataset: ledger.sql(f"FROM {table}").to_arrow_table().to_pylist() for dataset, table in _TABLES.items()}


def write_close(root: Path, style: Style | None = None) -> Writer:
    """The month close. Call `write` on what comes back."""
    plan = sample_plans()["gl-close"]
    recorded = Recorded(plan, sample_data(), MONTH, date(2026, 1, 1)).run()
    return Writer(root, recorded, style or Style(files=2, row_group=500))


def write_report(root: Path, close: Writer) -> Writer:
    """The group report, whose input the close registered."""
    plan = sample_plans()["group-report"]
    closed = close.recorded.outputs["Publish closed ledger"]
    last = close.recorded.states[60]
    origins = [ordinal for ordinal, row in zip(close.ordinals, last, strict=True) if not row["_deleted"]]
    data = sample_data() | {"gl-closed": closed}
    recorded = Recorded(plan, data, MONTH, date(2026, 1, 1)).run()
    return Writer(root, recorded, run_id="group-report-run", origins={"gl-closed": origins})
