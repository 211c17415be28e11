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
    return shop.project("six", *six_steps(), status="draft")


def completed(run: Run) -> Run:
    assert run.status == "COMPLETED", run.error
    return run


def full(shop: Shop, project: str = "six") -> Run:
    return completed(Workspace(shop.root).run(project, "2026-01"))


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


def answers(run: Run) -> dict[str, object]:
    """What a run says about its rows, where rows are known by their values, not by ids that each run has of its own."""
    trace = run.open_trace()
    told = dict[str, object]()
    seqs = [0, *(step.seq for step in run.steps)]
    told["counts"] = {step.seq: {k: v for k, v in step.counts.items()} for step in run.view.snapshot.steps}
    told["checks"] = {step.seq: [(c.name, c.at, c.passed) for c in step.checks] for step in run.view.snapshot.steps}
    told["amounts"] = {step.seq: step.amounts for step in run.view.snapshot.steps}
    histories = Counter[str]()
    for seq in seqs:
        rows = trace.search(None, at=seq, limit=10_000).rows
        told[f"state {seq}"] = Counter(repr(sorted(row.state.items(), key=str)) for row in rows)
        if seq == seqs[-1]:
            for row in rows:
                entries = trace.history(row.row_id).entries
                histories[repr([(e.operation_seq, e.change_type, sorted(e.full_state.items(), key=str)) for e in entries])] += 1
    for seq in seqs[1:]:
        records = trace.step_rows(seq, limit=10_000).records
        told[f"records {seq}"] = Counter(repr((each.change_type, each.before, each.after)) for each in records)
    told["histories"] = histories
    told["reconciled"] = [(each.title, each.ties) for each in run.reconcile().waterfalls]
    trace.close()
    return told
