"""A shop whose projects run without Spark: closing a month, and a report on what was closed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.engine.engine_workspaces import Shop, make_shop
from tests.trace.interpreting_engine import InterpretingEngine

MONTHS = ("2026-01", "2026-02", "2026-03")
ORDERS = [
    {"id": 100 * month + index, "currency": ("EUR", "USD")[index % 2], "amount": Decimal(index), "_period": period}
    for month, period in enumerate(MONTHS, 1)
    for index in range(1, 8)
]
RATES = [
    {"currency": "EUR", "rate": Decimal("1.1"), "_period_from": date(2025, 1, 1), "_period_to": None},
    {"currency": "USD", "rate": Decimal(1), "_period_from": date(2025, 1, 1), "_period_to": None},
]


def step(seq: int, name: str, type_: str, selector: str | None = None, **arguments: Any) -> dict[str, Any]:
    chosen = {} if selector is None else {"selector": selector}
    return {"seq": seq, "name": name, "type": type_, **chosen, "arguments": arguments}


def setting(**columns: str) -> list[dict[str, str]]:
    return [{"column": column, "expression": text} for column, text in columns.items()]


def output(seq: int, name: str, path: str, selector: str | None = None, **arguments: Any) -> dict[str, Any]:
    return step(seq, name, "output", selector, destination={"datasource_id": "reports", "path": path}, **arguments)


RATE = {"alias": "r", "dataset_id": "rates", "on": "r.currency = orders.currency"}
CLOSE = (
    step(10, "Convert", "update", joins=[RATE], assignments=setting(usd="ROUND(amount * r.rate, 2)")),
    step(20, "Drop small", "delete", "amount < 2"),
    output(
        30, "Publish", "closed/{period}", columns=["id", "currency", "usd", "_period"], register_as_dataset="closed"
    ),
)
REPORT = (
    step(10, "Totals", "aggregate", group_by=["currency"], aggregations=setting(total="SUM(usd)")),
    output(20, "Totals out", "totals/{period}", "total IS NOT NULL", columns=["currency", "total"]),
    output(30, "Lines out", "lines/{period}", 'total IS NULL AND currency = "EUR"', columns=["id", "usd"]),
)


@dataclass(frozen=True)
class Ran:
    """A shop with four runs: January and February closed, January reported, and a close of March that failed."""

    shop: Shop
    january: str
    february: str
    report: str
    failed: str


def interpreted_shop(root: Path, patch: pytest.MonkeyPatch, failing: frozenset[str] = frozenset()) -> Shop:
    """The shop, with the projects `close` and `report`. Steps in `failing` do."""
    shop = make_shop(root).project("close", *CLOSE).project("report", *REPORT, dataset="closed")
    data: dict[str, list[dict[str, Any]]] = {"orders": ORDERS, "rates": RATES, "targets": []}

    def engine(_workspace: object, environment: Any, datasets: Any, *_others: object, **_more: object) -> Any:
        return InterpretingEngine(environment.storage_root, datasets, data, failing)

    patch.setattr("clew.api.starting.SparkExecutors", engine)
    patch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
    return shop


@contextmanager
def ran_shop(root: Path) -> Iterator[Ran]:
    """The shop with its runs."""
    with pytest.MonkeyPatch.context() as patch:
        shop = interpreted_shop(root, patch)
        january, february, report = (
            shop.run(project, period).record.run_id
            for project, period in (("close", MONTHS[0]), ("close", MONTHS[1]), ("report", MONTHS[0]))
        )
        interpreted_shop(root, patch, failing=frozenset({"20"}))
        failed = shop.run("close", MONTHS[2]).record.run_id
        interpreted_shop(root, patch)
        yield Ran(shop, january, february, report, failed)
