"""An explanation as a tree to unfold: on a page, and in a self-contained file."""

from collections.abc import Sequence
from dataclasses import replace

from clew.change.restating import Restatements
from clew.deferred import dataclass
from clew.explain.tree import Explanation
from clew.server.pages import addresses, words
from clew.server.pages.explain_nodes import TreeNode, unlinked, walk
from clew.server.pages.explain_tree import TitleOf, tree_of

TOP = 5


@dataclass(frozen=True, slots=True)
class ExplainPage:
    """An explanation and its context."""

    run_id: str
    run_address: str
    run_title: str
    period: str
    row_id: str
    label: str
    column: str
    at: int
    root: TreeNode
    row_address: str
    rows_address: str
    graph_address: str
    download_address: str
    evidence_address: str
    json_address: str
    verdict: str
    is_verified: bool | None
    """Whether every recomputed value is equal; None if there was nothing to recompute."""
    checked: int
    restated_address: str
    restated: tuple[str, ...] | None
    """What earlier runs had in its place, in sentences; None if that was not asked."""


def explain_page(
    explanation: Explanation, title_of: TitleOf, *, top: int, restated: Restatements | None = None
) -> ExplainPage:
    """The page of an explanation."""
    root = tree_of(explanation, title_of)
    run_id, row_id, column, at = explanation.run_id, explanation.row_id, explanation.column, explanation.at
    title = title_of(run_id)
    outcomes = [node.formula.outcome for node in walk(root) if node.formula]
    left_out = sum(node.cut is not None for node in walk(root))
    return ExplainPage(
        run_id=run_id,
        run_address=addresses.run(run_id),
        run_title=title.title,
        period=title.period,
        row_id=row_id,
        label=words.row_name(explanation.label or row_id),
        column=column,
        at=at,
        root=root,
        row_address=addresses.row(run_id, row_id, at=at),
        rows_address=addresses.rows(run_id, at=at),
        graph_address=addresses.lineage(run=run_id, row=row_id, column=column, at=at),
        download_address=addresses.download(run_id, row_id, column, at=at, top=top),
        evidence_address=addresses.evidence(run_id, row=row_id, column=column, at=at),
        json_address=addresses.as_json(addresses.explanation(run_id, row_id, column, at=at, top=top)),
        verdict=words.joined(_verdict(outcomes), _left_out(left_out)),
        is_verified=None if not outcomes else "differs" not in outcomes,
        checked=outcomes.count("equal"),
        restated_address=addresses.explanation(run_id, row_id, column, at=at, top=top, restated="true"),
        restated=None if restated is None else restated.to_lines(),
    )


def explain_file(explanation: Explanation, title_of: TitleOf, *, top: int) -> ExplainPage:
    """The same for a file. It has no links, since its readers may not reach the server."""
    page = explain_page(explanation, title_of, top=top)
    return replace(page, root=unlinked(page.root))


def _left_out(values: int) -> str:
    if not values:
        return ""
    return (
        f"but {words.counted(values, 'value')} {'is' if values == 1 else 'are'} not explained here: each has its link"
    )


def _verdict(outcomes: Sequence[str]) -> str:
    differing, unchecked = outcomes.count("differs"), outcomes.count("not checked")
    if differing:
        return f"{words.counted(differing, 'value')} on this page differed when recomputed"
    if not outcomes:
        return "nothing to recompute: the value was taken as it was"
    rest = f"; {words.counted(unchecked, 'expression')} could not be checked" if unchecked else ""
    return f"{words.counted(outcomes.count('equal'), 'expression')} on this page recomputed: all equal{rest}"
