"""Replaces the uses of fragments by their operations, and sorts everything by seq.

A use at seq N of a fragment with k operations takes the seqs N to N+k-1, in the fragment's order. A use without seq
follows the entry before it in the file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import date

from clew.deferred import dataclass
from clew.definitions import ExpressionText, Fragment, Operation, Project, Use
from clew.definitions.salvage import SEQ_UNKNOWN
from clew.diagnostics import Problems, did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_PARAMETER
from clew.diagnostics.codes.project import DUPLICATE_ALIAS, DUPLICATE_SEQ, INVALID_LABEL, MISSING_PARAMETER
from clew.diagnostics.codes.workspace import FRAGMENT_CYCLE, INVALID_VALUE, UNKNOWN_FRAGMENT
from clew.plan.names import CALLSITE, is_label
from clew.plan.selectors import Selectors

MAIN = "main"
"""The instance path of the project's own operations."""

_MOST_ENTRIES = 20_000
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class PlacedOperation:
    """An operation at its place in the pipeline."""

    operation: Operation
    seq: int
    path: str
    """Aliases of the fragment uses that led here, joined by '/'."""
    selectors: Selectors
    """The named selectors that it can refer to; a fragment's own come before those of its user."""
    use: Use | None = None
    """The use through which it came, for messages about its seq."""


@dataclass(frozen=True, slots=True)
class ExpandedProject:
    """The operations of a project in the order in which they run."""

    operations: tuple[PlacedOperation, ...]
    missing_from: int | None
    """The first seq at which operations are missing, because they or their fragment could not be found or read."""
    selectors: Mapping[str, Selectors]
    """By instance path."""
    fragments: frozenset[str]
    """The ids of all fragments that are used."""


@dataclass(frozen=True, slots=True)
class FragmentLibrary:
    """The fragments that projects can use."""

    by_name: Mapping[str, Fragment]
    """By id and by name."""
    broken: frozenset[str] = frozenset()
    holidays: Mapping[str, Sequence[date]] = field(default_factory=dict)
    """By calendar."""


def expand(project: Project, library: FragmentLibrary, problems: Problems, *, is_whole: bool = True) -> ExpandedProject:
    """Put fragments in the place of their uses. A project that is not whole lacks operations or selectors."""
    expander = _Expander(library, problems)
    selectors = Selectors(project.selectors, problems, is_whole=is_whole, holidays=library.holidays)
    expander.selectors[MAIN] = selectors
    placed = expander.entries(project.operations, selectors, path=(), within=())
    _report_duplicate_seqs(placed, problems)
    ordered = tuple(sorted(placed, key=lambda each: each.seq))
    missing_from = min(expander.gaps, default=None) if is_whole else 0
    return ExpandedProject(ordered, missing_from, expander.selectors, frozenset(expander.fragments))


@dataclass(slots=True)
class _Expander:
    library: FragmentLibrary
    problems: Problems
    selectors: dict[str, Selectors] = field(default_factory=dict)
    fragments: set[str] = field(default_factory=set)
    gaps: list[int] = field(default_factory=list)
    """The seqs of uses without their operations, as they count in this project or fragment."""
    entry_count: int = 0

    def entries(
        self,
        entries: Sequence[Operation | Use],
        selectors: Selectors,
        path: tuple[str, ...],
        within: tuple[str, ...],
    ) -> list[PlacedOperation]:
        """The entries of a project or a fragment, with seqs as they count there."""
        placed = list[PlacedOperation]()
        aliases = dict[str, Use]()
        last_seq = 0
        for entry in entries:
            self.entry_count += 1
            if isinstance(entry, Use):
                start = entry.seq if entry.seq is not None else last_seq + 1
                inner = self._used(entry, selectors, (*path, self._alias(entry, path, aliases)), within, start)
                placed += [replace(each, seq=start + rank, use=entry) for rank, each in enumerate(inner)]
                last_seq = start + max(len(inner), 1) - 1
            else:
                last_seq = entry.seq if entry.seq != SEQ_UNKNOWN else last_seq + 1
                placed.append(PlacedOperation(entry, last_seq, "/".join(path) or MAIN, selectors))
        return placed

    def _used(
        self, use: Use, selectors: Selectors, path: tuple[str, ...], within: tuple[str, ...], seq: int
    ) -> list[PlacedOperation]:
        fragment = self._fragment(use, within)
        if fragment is None:
            self.gaps.append(seq)
            return []
        self.fragments.add(fragment.id)
        gaps_before = len(self.gaps)
        arguments = self._arguments(use, fragment)
        own = Selectors(fragment.selectors, self.problems, outer=selectors, arguments=arguments)
        self.selectors["/".join(path)] = own
        inner = self.entries(fragment.operations, own, path, (*within, fragment.id))
        if len(self.gaps) > gaps_before:
            self.gaps[gaps_before:] = [seq]
        _report_duplicate_seqs(inner, self.problems)
        return sorted(inner, key=lambda each: each.seq)

    def _arguments(self, use: Use, fragment: Fragment) -> Mapping[str, ExpressionText | None]:
        """What each argument of the fragment stands for here; None where nothing is given."""
        given = use.use.arguments
        for name in given:
            if name not in fragment.arguments:
                listed = ", ".join(fragment.arguments) or "none"
                hint = did_you_mean(name, fragment.arguments) or f"its arguments: {listed}"
                span = use.use.place("arguments", name)
                self.problems.report(UNKNOWN_PARAMETER.at(span, name=name, hint=hint))
        found = {name: given.get(name, declared.default) for name, declared in fragment.arguments.items()}
        for name, text in found.items():
            if text is None:
                hint = f"give it in the use, as arguments: {{{name}: EXPRESSION}}"
                self.problems.report(MISSING_PARAMETER.at(use.place("use", "fragment"), name=name, hint=hint))
        return found

    def _fragment(self, use: Use, within: tuple[str, ...]) -> Fragment | None:
        name, span = use.use.fragment, use.place("use", "fragment")
        fragment = self.library.by_name.get(name)
        if fragment is None:
            if name not in self.library.broken:
                hint = did_you_mean(name, self.library.by_name)
                self.problems.report(UNKNOWN_FRAGMENT.at(span, name=name, hint=hint))
        elif fragment.id in within:
            circle = " -> ".join((*within[within.index(fragment.id) :], fragment.id))
            self.problems.report(FRAGMENT_CYCLE.at(span, path=circle))
        elif len(within) >= _DEEPEST:
            problem = f"fragments are nested more than {_DEEPEST} levels deep"
            self.problems.report(INVALID_VALUE.at(span, problem=problem, hint="use them side by side"))
        elif self.entry_count > _MOST_ENTRIES:
            problem = f"the fragments expand to more than {_MOST_ENTRIES:,} operations"
            self.problems.report(INVALID_VALUE.at(span, problem=problem, hint="use fewer fragments within fragments"))
        else:
            return fragment
        return None

    def _alias(self, use: Use, path: tuple[str, ...], aliases: dict[str, Use]) -> str:
        """The alias of a use, or its number among the uses around it.

        A wrong alias is not used either, so that the names below it do not clash as well.
        """
        own, span = use.use.alias, use.place("use", "as")
        by_number = f"{CALLSITE}S{len(aliases) + 1}"
        alias = own if own is not None else by_number
        if own is not None and not is_label(own):
            self.problems.report(INVALID_LABEL.at(span, label=own, what="fragment alias"))
            alias = by_number
        elif own is not None and own in aliases:
            where = f" by the use in line {aliases[own].span.line}"
            self.problems.report(DUPLICATE_ALIAS.at(span, alias=own, where=where))
            alias = by_number
        elif own == MAIN and not path:
            where = ": it stands for the project's own operations"
            self.problems.report(DUPLICATE_ALIAS.at(span, alias=own, where=where))
            alias = by_number
        aliases[alias] = use
        return alias


def _report_duplicate_seqs(placed: Sequence[PlacedOperation], problems: Problems) -> None:
    """Every entry whose seqs are taken, once. An operation without a seq takes none."""
    first = dict[int, PlacedOperation]()
    reported = set[int]()
    for each in placed:
        entry: Operation | Use = each.use or each.operation
        if entry.seq == SEQ_UNKNOWN:
            continue
        other = first.setdefault(each.seq, each)
        taken_by: Operation | Use = other.use or other.operation
        if taken_by is entry or id(entry) in reported:
            continue
        reported.add(id(entry))
        hint = None
        if each.use is not None or other.use is not None:
            hint = "a use takes one seq for each operation of its fragment: leave room after it"
        problems.report(
            DUPLICATE_SEQ.at(
                entry.place("seq"),
                seq=each.seq,
                first=other.operation.name,
                first_line=taken_by.span.line,
                hint=hint,
            )
        )
