"""The results of a search, by what they are, each with the page that it leads to."""

from collections.abc import Mapping

from clew.api.searching import Found, Hit
from clew.deferred import dataclass
from clew.server.pages import addresses, words

_TITLES = {
    "row": "Rows",
    "run": "Runs",
    "trace id": "Trace ids",
    "project": "Projects",
    "dataset": "Datasets",
    "column": "Columns",
    "period": "Periods",
}


@dataclass(frozen=True, slots=True)
class ShownHit:
    """Something that was found."""

    name: str
    detail: str
    address: str


@dataclass(frozen=True, slots=True)
class HitGroup:
    """Results of one kind."""

    title: str
    hits: tuple[ShownHit, ...]


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The question and its answer."""

    text: str
    is_asked: bool
    is_partial: bool
    """Whether results that count were not looked at."""
    groups: tuple[HitGroup, ...]
    scope: str
    notes: tuple[str, ...]


def search_page(text: str, found: Found | None) -> SearchPage:
    """The page; `found` is None where nothing was asked for."""
    if found is None:
        return SearchPage("", is_asked=False, is_partial=False, groups=(), scope="", notes=())
    by_kind = dict[str, list[ShownHit]]()
    for hit in found.hits:
        by_kind.setdefault(hit.kind, []).append(_shown(hit))
    return SearchPage(
        text=text,
        is_asked=True,
        is_partial=found.not_looked_at > 0,
        groups=tuple(HitGroup(title, tuple(by_kind[kind])) for kind, title in _TITLES.items() if kind in by_kind),
        scope=_scope(found),
        notes=found.notes,
    )


def _scope(found: Found) -> str:
    looked = words.counted(found.looked_at, "result")
    scope = f"Rows were searched in {looked} that count, after the last step, for exactly this value. "
    if found.not_looked_at:
        scope += f"{words.counted(found.not_looked_at, 'other result')} and all superseded runs were not looked at."
    else:
        scope += "Superseded runs, earlier steps and captures were not looked at."
    return scope


def _shown(hit: Hit) -> ShownHit:
    detail = hit.detail
    if hit.kind == "row" and hit.columns:
        detail = f"{hit.project} {hit.period}, in {', '.join(hit.columns)}"
    return ShownHit(words.short(hit.name) if hit.kind == "run" else hit.name, detail, _address(hit))


def _address(hit: Hit) -> str:
    run = hit.run_id or ""
    known: Mapping[str, str] = {
        "row": addresses.row(run, hit.row_id or ""),
        "run": addresses.run(run),
        "trace id": addresses.lineage(trace=hit.name),
        "project": addresses.project(hit.project or ""),
        "dataset": addresses.dataset(hit.dataset or ""),
        "column": addresses.dataset(hit.dataset) if hit.dataset else addresses.project(hit.project or ""),
        "period": addresses.runs(period=hit.period),
    }
    return known[hit.kind]
