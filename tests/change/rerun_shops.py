"""A shop whose project has six operations, and what two runs of it have in common."""

from collections import Counter
from pathlib import Path
from typing import Any

from clew.api.run import Run
from clew.api.workspace import Workspace
from tests.engine.engine_workspaces import Shop, make_shop

ORDERS = "id,currency,amount,_period\n" + "".join(
    f"{number},{('EUR', 'USD', 'GBP')[number % 3]},{number}.50,2026-01\n" for number in range(1, 31)
)
RATE = {"alias": "r", "dataset_id": "rates", "on": "r.currency = orders.currency"}


def operation(seq: int, type_: str, selector: str | None = None, **arguments: Any) -> dict[str, Any]:
    chosen = {} if selector is None else {"selector": selector}
    return {"seq": seq, "name": f"step {seq}", "type": type_, **chosen, "arguments": arguments}


def setting(**columns: str) -> list[dict[str, str]]:
    return [{"column": column, "expression": text} for column, text in columns.items()]


def output(seq: int, path: str, selector: str | None = None, **arguments: Any) -> dict[str, Any]:
    return operation(seq, "output", selector, destination={"datasource_id": "reports", "path": path}, **arguments)


def six_steps() -> list[dict[str, Any]]:
    """Two updates, a summary, a deletion, an update that joins, and an output."""
    return [
        operation(10, "update", assignments=setting(net="amount * 2", kind='"line"')),
        operation(20, "update", 'currency = "EUR"', assignments=setting(net="net + 1")),
        operation(30, "aggregate", group_by=["currency"], aggregations=setting(net="SUM(net)")),
        operation(40, "delete", "id = 3"),
        operation(50, "update", joins=[RATE], assignments=setting(local="net * COALESCE(r.rate, 1)")),
        output(60, "six/{period}", columns=["id", "currency", "net", "kind", "local"]),
    ]


def rerun_shop(root: Path) -> Shop:
    shop = make_shop(root).write({"data/orders.csv": ORDERS})
    return edited(shop, six_steps())


def edited(shop: Shop, steps: list[dict[str, Any]], **more: Any) -> Shop:
    """The project with other operations; as a draft, so that its next run has them."""
    return shop.write(
        {
            "projects/six.yaml": {
                "id": "six",
                "status": "draft",
                "input_dataset": "orders",
                "operations": steps,
                **more,
            }
        }
    )


def completed(run: Run) -> Run:
    assert run.status == "COMPLETED", run.error
    return run


def full(shop: Shop) -> Run:
    return completed(Workspace(shop.root).run("six", "2026-01"))


def found(shop: Shop, run: Run) -> Run:
    """A run, for the files as they are now."""
    return Workspace(shop.root).get_run(run.id)


def rerun(shop: Shop, run: Run, **how: Any) -> Run:
    return completed(found(shop, run).rerun(**how))


def taken(run: Run) -> list[int]:
    """The steps that were taken over."""
    return [step.seq for step in run.steps if step.reuse is not None and step.reuse.run_id is not None]


def reasons(run: Run) -> dict[int, str]:
    """Why steps were computed; loading is step 0."""
    return {step.seq: step.reuse.reason for step in run.view.snapshot.steps if step.reuse and step.reuse.reason}


def rows_of(shop: Shop, run: Run, seq: int = 60) -> list[str]:
    [path] = [out["path"] for out in run.outputs if out["seq"] == seq]
    return sorted(repr(row) for row in shop.read(str(path)))


def answers(run: Run) -> dict[str, object]:
    """What a run says about its rows, where rows are known by their values, not by ids that each run has of its own."""
    trace = run.open_trace()
    told = dict[str, object]()
    steps = run.view.snapshot.steps
    told["counts"] = {step.seq: dict(step.counts) for step in steps}
    told["amounts"] = {step.seq: step.amounts for step in steps}
    told["checks"] = sorted(
        (check.name, check.at, check.passed, check.failed_rows) for check in run.view.snapshot.checks
    )
    for step in steps:
        rows = trace.search(None, at=step.seq, limit=10_000).rows
        told[f"state {step.seq}"] = Counter(repr(sorted(row.state.items())) for row in rows)
        if step.seq:
            records = trace.step_rows(step.seq, limit=10_000).records
            told[f"records {step.seq}"] = Counter(repr((each.change_type, each.before, each.after)) for each in records)
    entries = (trace.history(row.row_id).entries for row in rows)
    told["histories"] = Counter(
        repr([(each.operation_seq, each.change_type, sorted(each.full_state.items())) for each in history])
        for history in entries
    )
    told["reconciled"] = [(each.title, each.ties) for each in run.reconcile().waterfalls]
    trace.close()
    return told


def require_whole(run: Run) -> None:
    """Every byte that the run names is what was written, and every expression gives what its files say."""
    assert run.verification(deep=True).findings == ()
