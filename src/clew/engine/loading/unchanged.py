"""Whether the sources of a dataset are what an earlier run has read, found without reading their rows.

A pinned input keeps the digest of each of its files, and one of the way in which they were read. If both are the same,
so are the rows.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from clew.definitions import FilesDatasource, Period, PeriodTree
from clew.engine.loading.corrections import read_corrections
from clew.engine.loading.pinning import FILE_FORMATS, found_files
from clew.engine.loading.source_digests import digest_of
from clew.engine.loading.sources import PinRequest
from clew.plan.datasets import DatasetUse
from clew.plan.json_form import to_plain
from clew.plan.resolution import ResolvedSource
from clew.storage.parts import READ_AS, Part, SourceRead


def read_as(use: DatasetUse, sources: Sequence[ResolvedSource], period: Period, periods: PeriodTree) -> str:
    """A digest of how sources are read: the dataset, the rules, and what the period means. Secrets stay references."""
    content = {
        "use": to_plain(use),
        "sources": [asdict(source) for source in sources],
        "period": period.identifier,
        "periods": sorted((each.identifier, str(each.start_date), str(each.end_date)) for each in periods.periods),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def changed_sources(request: PinRequest, earlier: Part) -> str | None:
    """Why the sources of a dataset may have other rows than an earlier run has read; None if they have the same."""
    known: Mapping[str, object] = earlier.details or {}
    if known.get(READ_AS) is None:
        return "that run does not say how it read them"
    if known.get(READ_AS) != request.resolution.get(READ_AS):
        return "how they are found or read was changed"
    source = request.sources[0]
    datasource = request.datasources.get(source.datasource_id)
    if source.kind != "path" or source.format not in FILE_FORMATS or not isinstance(datasource, FilesDatasource):
        return "its sources have no digests"
    files = [*(each.file for each in found_files(request)), *(each.file for each in read_corrections(request).files)]
    return _difference(earlier.sources, [digest_of(file) for file in files])


def _difference(then: Sequence[SourceRead], now: Sequence[SourceRead]) -> str | None:
    known = {each.name: each for each in then}
    found = {each.name: each for each in now}
    for name in [*known, *found]:
        if name not in found:
            return f"{name} is gone"
        if name not in known:
            return f"{name} is new"
        if known[name] != found[name]:
            return f"{name} was changed"
        if known[name].digest is None:
            return f"{name} has no digest"
    return None if known else "its sources have no digests"
