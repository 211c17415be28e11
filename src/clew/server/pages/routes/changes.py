"""Two runs: in what they differ, and why."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from clew.api.run import Run
from clew.auth.access_log import Subject
from clew.change.bridge import ChangeBridge
from clew.change.comparison import RunComparison
from clew.change.impact import PlanImpact
from clew.change.sensitivity import Sensitivity
from clew.change.what_if import WhatIf
from clew.server.access.visit import RowVisit, Visit
from clew.server.pages import words
from clew.server.pages.compare_page import PAGE_ROWS, CompareQuery, compare_page
from clew.server.pages.impact_page import impact_page
from clew.server.pages.rendering import AtDesk
from clew.server.pages.what_if_page import WHAT_IF_ROWS, WhatIfQuery, what_if_page
from clew.server.pages.why_changed_page import WhyChangedQuery, why_changed_page

router = APIRouter()

_MOST_RUNS = 50


@router.get("/runs/{run}/compare")
@router.get("/runs/{run}/compare.json")
def compare(
    run: str,
    visit: RowVisit,
    desk: AtDesk,
    other: str = "",
    where: str = "",
    sort: str = "",
    output: Annotated[int | None, Query(ge=0)] = None,
    at: Annotated[int | None, Query(ge=0)] = None,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """In what another run of the project differs from a run."""
    asked = visit.workspace.find_run(run)
    trace = asked.open_trace()
    found = visit.workspace.find_run(other) if other else None
    if found is not None:
        told = f" where {trace.recorded(where)}" if where else ""
        visit.has_read(Subject.TRACE, asked.id, f"compared with {found.id}{told}")
        visit.has_read(Subject.TRACE, found.id, f"compared with {asked.id}{told}")
    query = CompareQuery(found.id if found else "", where.strip(), sort, output, offset, at)

    def answer(wanted: CompareQuery) -> RunComparison:
        return asked.compare(
            wanted.other,
            output=wanted.output,
            at=wanted.at,
            where=wanted.where or None,
            sort=wanted.sort or None,
            limit=PAGE_ROWS,
            offset=wanted.offset,
        )

    return desk.page(
        visit,
        "compare.html",
        section="Runs",
        page=lambda: compare_page(trace, _others(visit, asked), query, answer),
        document=lambda: (
            answer(query).to_json() if query.other else {"runs": [run_id for run_id, _ in _others(visit, asked)]}
        ),
    )


@router.get("/runs/{run}/why-changed")
@router.get("/runs/{run}/why-changed.json")
def why_changed(
    run: str,
    visit: RowVisit,
    desk: AtDesk,
    other: str = "",
    column: str = "",
    where: str = "",
    output: Annotated[int | None, Query(ge=0)] = None,
    mode: Literal["shapley", "sequential"] = "shapley",
) -> Response:
    """Why a value of another run is not what it is in a run."""
    asked = visit.workspace.find_run(run)
    trace = asked.open_trace()
    found = visit.workspace.find_run(other) if other else None
    if found is not None and column:
        told = f" where {trace.recorded(where)}" if where else ""
        visit.has_read(Subject.EXPLANATION, asked.id, f"why {column} changed{told} in {found.id}")
        visit.has_read(Subject.EXPLANATION, found.id, f"why {column} changed{told} since {asked.id}")
    query = WhyChangedQuery(found.id if found else "", column, where.strip(), output, mode)

    def answer(wanted: WhyChangedQuery) -> ChangeBridge:
        return asked.why_changed(
            wanted.other, wanted.column, where=wanted.where or None, output=wanted.output, mode=wanted.mode
        )

    return desk.page(
        visit,
        "why_changed.html",
        section="Runs",
        page=lambda: why_changed_page(trace, _others(visit, asked), query, answer),
        document=lambda: (
            answer(query).to_json()
            if query.other and query.column
            else {"runs": [run_id for run_id, _ in _others(visit, asked)]}
        ),
    )


@router.get("/runs/{run}/what-if")
@router.get("/runs/{run}/what-if.json")
def what_if(
    run: str,
    visit: RowVisit,
    desk: AtDesk,
    sets: Annotated[list[str] | None, Query(alias="set")] = None,
    drops: Annotated[list[str] | None, Query(alias="drop")] = None,
    expressions: Annotated[list[str] | None, Query(alias="expression")] = None,
    parameters: Annotated[list[str] | None, Query(alias="parameter")] = None,
    where: str = "",
    output: Annotated[int | None, Query(ge=0)] = None,
    sort: str = "",
    draft: Annotated[str, Query(max_length=10_000)] = "",
    sensitivity: str = "",
) -> Response:
    """What would be different in a run, or what a total of it hangs on."""
    asked = visit.workspace.find_run(run)
    trace = asked.open_trace()
    texts = [
        tuple(each.strip() for each in given or () if each.strip()) for given in (sets, drops, expressions, parameters)
    ]
    query = WhatIfQuery(
        texts[0],
        texts[1],
        texts[2],
        texts[3],
        where=where.strip(),
        output=output,
        sort=sort,
        draft=draft.strip(),
        sensitivity=sensitivity,
    )
    within = f" where {trace.recorded(query.where)}" if query.where else ""
    if query.is_asked:
        told = asked.recorded_suppositions(
            sets=query.sets, drops=query.drops, expressions=query.expressions, parameters=query.values
        )
        visit.has_read(Subject.EXPLANATION, asked.id, f"what if: {told}{within}")
    elif sensitivity:
        visit.has_read(Subject.EXPLANATION, asked.id, f"what the total of {sensitivity} hangs on{within}")

    def answer(wanted: WhatIfQuery) -> WhatIf:
        return asked.what_if(
            sets=wanted.sets,
            drops=wanted.drops,
            expressions=wanted.expressions,
            parameters=wanted.values,
            where=wanted.where or None,
            output=wanted.output,
            sort=wanted.sort or None,
            limit=WHAT_IF_ROWS,
        )

    def sense(wanted: WhatIfQuery) -> Sensitivity:
        return asked.sensitivity(wanted.sensitivity, where=wanted.where or None, output=wanted.output)

    def document() -> dict[str, object]:
        if query.is_asked:
            return answer(query).to_json()
        return sense(query).to_json() if query.sensitivity else {"run_id": asked.id}

    return desk.page(
        visit,
        "what_if.html",
        section="Runs",
        page=lambda: what_if_page(trace, query, answer, sense),
        document=document,
    )


@router.get("/runs/{run}/impact")
@router.get("/runs/{run}/impact.json")
def impact(run: str, visit: RowVisit, desk: AtDesk) -> Response:
    """What the project, as its file is now, would have changed in a run."""
    asked = visit.workspace.find_run(run)
    trace = asked.open_trace()
    visit.has_read(Subject.EXPLANATION, asked.id, f"what {asked.project} as edited would change")

    def answer() -> PlanImpact:
        return asked.impact()

    return desk.page(
        visit,
        "impact.html",
        section="Projects",
        page=lambda: impact_page(trace, asked.project, answer),
        document=lambda: answer().to_json(),
    )


def _others(visit: Visit, run: Run) -> list[tuple[str, str]]:
    """Ids and names of the other runs of a project, newest first."""
    runs = visit.workspace.find_runs(project=run.project, limit=_MOST_RUNS)
    return [(each.id, _name(each)) for each in runs if each.id != run.id]


def _name(run: Run) -> str:
    return f"{run.period} · {words.minute(run.record.created_at)} · {words.short(run.id)}"
