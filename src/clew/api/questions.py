"""Questions about rows: why a value is what it is, why rows are missing from an output, where a trace leads.

The answers are trees that render themselves as text, HTML or JSON.
"""

from dataclasses import fields
from functools import cache

from clew.api.opened_environment import OpenedEnvironment
from clew.diagnostics import UserError
from clew.explain.elsewhere import why_not_in
from clew.explain.explaining import explain, row_named
from clew.explain.outline import outline, why_not_outline
from clew.explain.run_lineage import DatasetWriters, run_lineage, upstream_runs
from clew.explain.tree import Explanation
from clew.explain.views import as_html, as_json, as_text, fragment
from clew.explain.why_not import WhyNot
from clew.runs.view import RunFacts
from clew.tracelink import Direction, Lineage, UnitedLineage, ask_lineage
from clew.tracelink.lineage_walk import MAX_DEPTH, MAX_NODES

_DEEPEST = 20
"""Through how many projects a row that is missing is followed."""

TOP = 5
"""How many rows of a summary an explanation shows by default."""


class ExplainedValue(Explanation):
    """Why a column of a row has its value."""

    __slots__ = ()

    @classmethod
    def of(cls, tree: Explanation) -> "ExplainedValue":
        """An explanation tree, or part of one, that can render itself."""
        return cls(**{field.name: getattr(tree, field.name) for field in fields(tree)})

    def to_text(self, width: int | None = None) -> str:
        """Lines drawn as a tree, wrapped if a width is given."""
        return as_text(self, width)

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    def to_html(self) -> str:
        """A self-contained HTML page."""
        return as_html(self)

    def to_json(self) -> dict[str, object]:
        """The form of `clew explain --json`."""
        return as_json(self)

    def _repr_html_(self) -> str:
        return fragment(outline(self))


class AbsentRows(WhyNot):
    """Why rows are missing from an output."""

    __slots__ = ()

    @classmethod
    def of(cls, answer: WhyNot) -> "AbsentRows":
        """An answer that can render itself."""
        return cls(**{field.name: getattr(answer, field.name) for field in fields(answer)})

    def to_text(self, width: int | None = None) -> str:
        """Lines drawn as a tree, wrapped if a width is given."""
        return as_text(self, width)

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    def to_html(self) -> str:
        """A self-contained HTML page."""
        return as_html(self)

    def to_json(self) -> dict[str, object]:
        """The form of `clew explain --why-not --json`."""
        return as_json(self)

    def _repr_html_(self) -> str:
        return fragment(why_not_outline(self))


def explained(
    at: OpenedEnvironment,
    run: str,
    row: str,
    column: str,
    *,
    step: int | None = None,
    top: int | None = TOP,
    every_row: bool = False,
    skip: int = 0,
) -> ExplainedValue:
    """Why a value is what it is, across all runs that the principal may see. `top` None shows every source row."""
    seen = at.seen(at.runs.find(run))
    seen.require_explanation(column)
    upstream = upstream_runs(at.state, cache(at.trace))
    trace = at.trace_of(at.runs.find(run))
    tree = explain(trace, row, column, step, upstream=upstream, top=top, every_row=every_row, skip=skip)
    return ExplainedValue.of(at.answers.explanation(tree))


def one_row(at: OpenedEnvironment, run: str, where: str, step: int | None = None) -> str:
    """The id of the one row that matches a condition. Raises UserError if several rows match, or none."""
    return row_named(at.seen(at.runs.find(run)), where, step)


def absent_rows(at: OpenedEnvironment, view: RunFacts, where: str, output: int | None = None) -> AbsentRows:
    """Why the rows that match a condition are missing from an output of a run.

    Considers other runs that the principal may see. Rules and files belong to the workspace and are shown only to its
    tenant.
    """
    writers = DatasetWriters(at.state, cache(at.trace))
    return AbsentRows.of(at.answers.why_not(_absent(at, view, where, output, writers, frozenset({view.record.run_id}))))


def _absent(
    at: OpenedEnvironment,
    view: RunFacts,
    where: str,
    output: int | None,
    writers: DatasetWriters,
    asked: frozenset[str],
) -> WhyNot:
    """The answer of a run, and of those that registered what it read, as long as the caller may ask them."""
    at.seen(view.record).require_question(where)

    def ask(run_id: str, seq: int) -> WhyNot | None:
        if run_id in asked or len(asked) > _DEEPEST:
            return None
        try:
            return _absent(at, at.runs.facts(run_id), where, seq, writers, asked | {run_id})
        except UserError:
            return None

    return why_not_in(
        view,
        at.trace_of(view.record),
        where,
        output,
        environment=at.environment,
        reader=at.runs,
        workspace=at.source.current().loaded.workspace if at.is_own_tenant else None,
        writers=writers,
        ask=ask,
    )


def followed_lineage(
    at: OpenedEnvironment,
    trace_id: int,
    direction: Direction = Direction.UP,
    *,
    depth: int = MAX_DEPTH,
    limit: int = MAX_NODES,
) -> Lineage:
    """A trace through runs, projects and processes: rows of runs from their files, the rest from the state store.

    Raises UserError TraceNotFound if the trace is unknown, Forbidden if the workspace belongs to another tenant.
    """
    at.require_own_tenant()
    at.policy.require_rows()
    reader = UnitedLineage([run_lineage(at.state, at.environment, cache(at.trace)), at.state.tracelink.reader])
    return ask_lineage(reader, trace_id, direction, max_depth=depth, max_nodes=limit)
