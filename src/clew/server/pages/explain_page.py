"""An explanation as a tree to unfold: on a page, and in a self-contained file."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from clew.change.restating import Restatements
from clew.deferred import dataclass
from clew.explain.tree import Explanation
from clew.server.pages import addresses, words
from clew.server.pages.explain_nodes import TreeNode, unlinked, walk
from clew.server.pages.explain_tree import Before, TitleOf, tree_of

TOP = 5
_MOST_SHARE = 10**12
"""Parts of a sum are small numbers, unless the sum is almost nothing."""


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
    verdict: "Verdict"
    checked: int
    restated_address: str
    restated: tuple[str, ...] | None
    """What earlier runs had in its place, in sentences; None if that was not asked."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What recomputing the values of a page gave, and how many of them are not explained on it."""

    equal: int = 0
    differing: int = 0
    unchecked: int = 0
    left_out: int = 0

    @classmethod
    def of(cls, nodes: Iterable[TreeNode]) -> "Verdict":
        """The verdict about nodes of a tree."""
        nodes = list(nodes)
        found = Counter(node.formula.outcome for node in nodes if node.formula)
        left_out = sum(node.cut is not None for node in nodes)
        return cls(found["equal"], found["differs"], found["not checked"], left_out)

    @classmethod
    def read(cls, text: str) -> "Verdict":
        """The verdict that `written` gave; none where it is something else."""
        numbers = text.split(".")
        return cls(*map(int, numbers)) if len(numbers) == 4 and all(map(str.isdecimal, numbers)) else cls()

    @property
    def written(self) -> str:
        """The numbers, for the script that asks for more rows."""
        return f"{self.equal}.{self.differing}.{self.unchecked}.{self.left_out}"

    def __add__(self, other: "Verdict") -> "Verdict":
        return Verdict(
            self.equal + other.equal,
            self.differing + other.differing,
            self.unchecked + other.unchecked,
            self.left_out + other.left_out,
        )

    @property
    def is_verified(self) -> bool | None:
        """Whether every recomputed value is equal; None if there was nothing to recompute."""
        return None if not self.equal + self.differing + self.unchecked else not self.differing

    @property
    def text(self) -> str:
        """The verdict in a sentence."""
        return words.joined(self._recomputed, _left_out(self.left_out))

    @property
    def _recomputed(self) -> str:
        if self.differing:
            return f"{words.counted(self.differing, 'value')} on this page differed when recomputed"
        if self.is_verified is None:
            return "nothing to recompute: the value was taken as it was"
        rest = f"; {words.counted(self.unchecked, 'expression')} could not be checked" if self.unchecked else ""
        return f"{words.counted(self.equal, 'expression')} on this page recomputed: all equal{rest}"


@dataclass(frozen=True, slots=True)
class MoreRows:
    """More of the rows behind a summary, and the verdict about the page once they are on it."""

    root: TreeNode
    verdict: Verdict


def more_rows(explanation: Explanation, title_of: TitleOf, before: Before, so_far: Verdict) -> MoreRows:
    """The next rows of a summary."""
    root = tree_of(explanation, title_of, before)
    return MoreRows(root, so_far + Verdict.of(node for parent in root.parents for node in walk(parent)))


def rows_before(skip: int, scale: str, share: str) -> Before:
    """What is on the page already, as its script tells it: numbers that only decide how bars and shares look."""
    try:
        part, largest = Decimal(share or 0), Decimal(scale or 0)
    except ArithmeticError:
        return Before(skip)
    is_a_share = part.is_finite() and largest.is_finite() and max(abs(part), abs(largest)) < _MOST_SHARE
    return Before(skip, part, abs(largest) or None) if is_a_share else Before(skip)


def explain_page(
    explanation: Explanation, title_of: TitleOf, *, top: int, restated: Restatements | None = None
) -> ExplainPage:
    """The page of an explanation."""
    root = tree_of(explanation, title_of)
    run_id, row_id, column, at = explanation.run_id, explanation.row_id, explanation.column, explanation.at
    title = title_of(run_id)
    verdict = Verdict.of(walk(root))
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
        verdict=verdict,
        checked=verdict.equal,
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
