"""Fragments put in the place of their uses, and everything in the order of seq.

A use at seq N of a fragment with k operations takes the seqs N to N+k-1, the fragment's operations in their own order.
A use without seq follows the entry before it in the file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clew.diagnostics import did_you_mean
from clew.diagnostics.codes.project import DUPLICATE_ALIAS, DUPLICATE_SEQ, INVALID_LABEL
from clew.diagnostics.codes.workspace import FRAGMENT_CYCLE, UNKNOWN_FRAGMENT
from clew.model import ExpressionText, Fragment, Operation, Project, Use
from clew.plan.labels import is_label
from clew.plan.problems import Problems

MAIN = "main"
"""The instance path of the project's own operations."""


@dataclass(frozen=True, slots=True)
class PlacedOperation:
    """An operation at its place in the pipeline."""

    operation: Operation
    seq: int
    path: str
    """Aliases of the fragment uses that led here, joined by '/'."""
    selectors: Mapping[str, ExpressionText]
    """The named selectors that it can refer to; a fragment's own come before those of its user."""
    use: Use | None = None
    """The project's own use through which it came, for messages about its seq."""


def expand(
    project: Project, fragments: Mapping[str, Fragment], broken: frozenset[str], problems: Problems
) -> tuple[PlacedOperation, ...]:
    """The operations of a project in the order in which they run."""
    expansion = _Expansion(fragments, broken, problems)
    placed = expansion.entries(project.operations, project.selectors, path=(), within=())
    _report_duplicate_seqs(placed, problems)
    return tuple(sorted(placed, key=lambda each: each.seq))


@dataclass(frozen=True, slots=True)
class _Expansion:
    fragments: Mapping[str, Fragment]
    broken: frozenset[str]
    problems: Problems

    def entries(
        self,
        entries: Sequence[Operation | Use],
        selectors: Mapping[str, ExpressionText],
        path: tuple[str, ...],
        within: tuple[str, ...],
    ) -> list[PlacedOperation]:
        """The entries of a project or a fragment, with seqs as they count there."""
        placed = list[PlacedOperation]()
        aliases = dict[str, Use]()
        last_seq = 0
        for entry in entries:
            if isinstance(entry, Use):
                start = entry.seq if entry.seq is not None else last_seq + 1
                inner = self._used(entry, selectors, path, within, aliases)
                placed += [replace(each, seq=start + rank, use=entry) for rank, each in enumerate(inner)]
                last_seq = max(last_seq if entry.seq is None else 0, start + max(len(inner), 1) - 1)
            else:
                placed.append(PlacedOperation(entry, entry.seq, "/".join(path) or MAIN, selectors))
                last_seq = entry.seq
        return placed

    def _used(
        self,
        use: Use,
        selectors: Mapping[str, ExpressionText],
        path: tuple[str, ...],
        within: tuple[str, ...],
        aliases: dict[str, Use],
    ) -> list[PlacedOperation]:
        alias = self._alias(use, path, aliases)
        fragment = self.fragments.get(use.use.fragment)
        if fragment is None:
            if use.use.fragment not in self.broken:
                hint = did_you_mean(use.use.fragment, self.fragments)
                self.problems.report(
                    UNKNOWN_FRAGMENT.at(use.place("use", "fragment"), name=use.use.fragment, hint=hint)
                )
            return []
        if fragment.id in within:
            circle = " -> ".join((*within[within.index(fragment.id) :], fragment.id))
            self.problems.report(FRAGMENT_CYCLE.at(use.place("use", "fragment"), path=circle))
            return []
        visible = {**selectors, **fragment.selectors}
        inner = self.entries(fragment.operations, visible, (*path, alias), (*within, fragment.id))
        _report_duplicate_seqs([each for each in inner if each.use is None], self.problems)
        return sorted(inner, key=lambda each: each.seq)

    def _alias(self, use: Use, path: tuple[str, ...], aliases: dict[str, Use]) -> str:
        alias = use.use.alias
        if alias is None:
            place = use.span
            return f"__callsite_L{place.line}C{place.column}"
        if not is_label(alias):
            self.problems.report(INVALID_LABEL.at(use.place("use", "as"), label=alias, what="fragment alias"))
        elif alias in aliases:
            where = f" by the use in line {aliases[alias].span.line}"
            self.problems.report(DUPLICATE_ALIAS.at(use.place("use", "as"), alias=alias, where=where))
        elif alias == MAIN and not path:
            where = ": it stands for the project's own operations"
            self.problems.report(DUPLICATE_ALIAS.at(use.place("use", "as"), alias=alias, where=where))
        aliases.setdefault(alias, use)
        return alias


def _report_duplicate_seqs(placed: Sequence[PlacedOperation], problems: Problems) -> None:
    first = dict[int, PlacedOperation]()
    for each in placed:
        other = first.setdefault(each.seq, each)
        if other is each:
            continue
        if each.use is not None and other.use is each.use:
            continue
        span = each.use.span if each.use is not None else each.operation.place("seq")
        other_span = other.use.span if other.use is not None else other.operation.span
        hint = None
        if each.use is not None or other.use is not None:
            hint = "a use takes one seq for each operation of its fragment: leave room after it"
        problems.report(
            DUPLICATE_SEQ.at(span, seq=each.seq, first=other.operation.name, first_line=other_span.line, hint=hint)
        )
