"""Gathers what goes into an evidence pack: what a run recorded, and why values are what they are, as a role sees it."""

import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from clew.api.kept_checkpoints import checkpoint_file, kept_checkpoints
from clew.api.opened_environment import OpenedEnvironment
from clew.api.questions import one_row
from clew.api.run_view import resolver_snapshots
from clew.deferred import dataclass
from clew.definitions import Environment
from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import EVIDENCE_TOO_LARGE, NOT_AN_OUTPUT, RUN_NOT_FINISHED
from clew.events.artifacts import key_of_part, parts_among
from clew.events.codec import canonical_json, encode
from clew.events.ledger import EntryKind, LedgerNote
from clew.evidence.archive import EvidencePack, signed_pack
from clew.evidence.contents import ExplainedPair, Json, RunEvidence, input_rows, pretty, runs_in
from clew.evidence.page import evidence_page
from clew.evidence.signing import EvidenceKey
from clew.explain.disclosure import disclosed
from clew.explain.explaining import explain_completely
from clew.explain.row_conditions import all_of, is_not_deleted
from clew.explain.run_lineage import upstream_runs
from clew.privacy.messages import as_seen
from clew.privacy.policy import PrivacyPolicy
from clew.runs.clock import utc_now
from clew.runs.request import RunRecord
from clew.runs.seal_keys import seal_key
from clew.storage.committed import committed_part
from clew.storage.layout import plan_key
from clew.storage.parts import PartFile
from clew.trace.records import RowValues

MOST_VALUES = 2_000
"""The most values of an output that a pack explains."""
_SECRET = re.compile(r"secret|password|token|key|credential|auth", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceWish:
    """What a pack is to explain: one value, all values of an output, or none."""

    row: str | None = None
    where: str | None = None
    column: str | None = None
    at: int | None = None
    output: int | None = None

    def described(self, where: str | None) -> str:
        """In words, for records, with a condition as others may read it."""
        told = {"row": self.row, "where": where, "column": self.column, "at": self.at, "output": self.output}
        return ", ".join(f"{name} {value}" for name, value in told.items() if value is not None) or "the run"


@dataclass(frozen=True, slots=True)
class MadePack:
    """A pack, and what it gives away: the columns and the rows whose values are in it."""

    pack: EvidencePack
    columns: tuple[str, ...]
    rows: frozenset[str]


def evidence_of(at: OpenedEnvironment, run: str, wish: EvidenceWish) -> MadePack:
    """A signed pack about a run that has ended. That it was made is recorded in the ledger."""
    record = at.runs.find(run)
    view = at.runs.view(record.run_id)
    if not view.snapshot.status.is_terminal:
        raise UserError(RUN_NOT_FINISHED.anywhere(run_id=record.run_id, status=view.snapshot.status.value))
    pairs = [_explained(at, record, row, column, step) for row, column, step in _wanted(at, record, wish)]
    others = dict.fromkeys(run_id for pair in pairs for run_id in runs_in(pair.told))
    runs = {run_id: _run(at, run_id) for run_id in dict.fromkeys([record.run_id, *others])}
    rows = input_rows([pair.seen for pair in pairs], runs, _SeenStates(at))
    key, now = EvidenceKey.of(seal_key(at.environment)), utc_now()
    made: Json = {
        "at": now.isoformat(),
        "by": at.principal.name,
        "role": at.principal.role.value,
        "environment": at.environment.name,
        "tenant": at.environment.settings.tenant,
        "about": wish.described(None if wish.where is None else at.seen(record).recorded(wish.where)),
    }
    document = _document(at, record, made, runs, pairs, key)
    texts = _texts(at, record)
    members = {
        "evidence.json": pretty(document),
        "rows.json": pretty({"rows": rows}),
        "checkpoints.jsonl": _checkpoints(at, runs[record.run_id]),
        **{member: content for each in runs.values() for member, content in each.members().items()},
        **{_member(number): pretty(pair.to_json()) for number, pair in enumerate(pairs, 1)},
        **{f"project/{name}": text.encode() for name, text in texts.items()},
    }
    members["index.html"] = evidence_page(
        document=document,
        runs=runs,
        texts=texts,
        explanations=[pair.seen for pair in pairs],
        rows=rows,
        fingerprint=key.fingerprint,
    )
    summary = {
        "explanations": len(pairs),
        "rows": len(rows),
        "events": sum(len(each.events) for each in runs.values()),
    }
    pack = signed_pack(members, key, made_at=now, predicate={"made": made, "run": record.run_id}, summary=summary)
    content = {"by": at.principal.name, "key": key.fingerprint, "about": made["about"]}
    at.state.ledger_writer.note(LedgerNote(EntryKind.EVIDENCE_MADE, record.run_id, content))
    return MadePack(pack, *_disclosed(pairs, rows))


def _disclosed(pairs: Sequence[ExplainedPair], rows: Sequence[Json]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The columns and rows of explanations and input rows."""
    told = [disclosed(pair.seen) for pair in pairs]
    values = [each["values"] for each in rows]
    inputs = (name for each in values if isinstance(each, dict) for name in each)
    columns = dict.fromkeys([*(name for names, _ in told for name in names), *inputs])
    return tuple(columns), frozenset[str]().union(*(ids for _, ids in told))


def _member(number: int) -> str:
    return f"explanations/{number:04}.json"


# What is explained


def _wanted(at: OpenedEnvironment, record: RunRecord, wish: EvidenceWish) -> list[tuple[str, str, int | None]]:
    """The values to explain: row, column and step."""
    if wish.output is not None:
        return _of_output(at, record, wish.output)
    if wish.column is None:
        return []
    row = wish.row if wish.row is not None else one_row(at, record.run_id, wish.where or "", wish.at)
    return [(row, wish.column, wish.at)]


def _of_output(at: OpenedEnvironment, record: RunRecord, seq: int) -> list[tuple[str, str, int | None]]:
    """Every value that an output has, as far as the principal may see it."""
    seen, trace = at.seen(record), at.trace_of(record)
    seen.policy.require_rows()
    trace.run.reached_step(seq)
    step = next((each for each in trace.plan.outputs if each.seq == seq), None)
    if step is None:
        raise UserError(NOT_AN_OUTPUT.anywhere(problem=f"step {seq} does not write an output"))
    known = {name for name, _ in seen.columns.columns(trace.run.columns(seq))}
    columns = [name for name in step.columns if name in known]
    chosen = [None if step.include_deleted else is_not_deleted(trace.plan.input.table)]
    condition = all_of([*chosen, step.selector.tree if step.selector else None])
    most = max(1, MOST_VALUES // max(1, len(columns)))
    found = trace.search(condition, seq, limit=most)
    if found.has_more:
        problem = f"the output has more than {most:,} rows of {len(columns)} columns"
        raise UserError(EVIDENCE_TOO_LARGE.anywhere(problem=problem))
    return [(row.row_id, column, seq) for row in found.rows for column in columns]


def _explained(at: OpenedEnvironment, record: RunRecord, row: str, column: str, step: int | None) -> ExplainedPair:
    at.seen(record).require_explanation(column)
    upstream = upstream_runs(at.state, cache(at.trace))
    told = explain_completely(at.trace_of(record), row, column, step, upstream=upstream)
    return ExplainedPair(told, at.answers.explanation(told))


@dataclass(frozen=True, slots=True)
class _SeenStates:
    """Rows as the principal may see them."""

    at: OpenedEnvironment

    def states(self, run_id: str, row_ids: Iterable[str]) -> Mapping[str, RowValues]:
        """The values of loaded rows by row id."""
        return self.at.seen(self.at.runs.find(run_id)).states(row_ids, 0)

    def file(self, run_id: str, row_id: str) -> PartFile | None:
        """The file that Clew keeps a loaded row in."""
        trace = self.at.trace(run_id)
        ordinal = trace.row_ids.ordinal(row_id)
        place = None if ordinal is None else trace.run.place(ordinal)
        return None if place is None else place[1]


# What a run recorded


def _run(at: OpenedEnvironment, run_id: str) -> RunEvidence:
    """What a run recorded, as the principal may see it."""
    view = at.runs.view(run_id)
    if view.plan is None:
        raise UserError(view.plan_problem or RUN_NOT_FINISHED.anywhere(run_id=run_id, status="without a plan"))
    root, trace, policy = at.environment.storage_root, at.trace(run_id), at.policy
    descriptions = dict[str, bytes]()
    for artifact in parts_among(view.snapshot.artifacts):
        committed_part(root, artifact)
        descriptions[artifact.uri] = root.read_bytes(key_of_part(artifact))
    entries = list(at.state.ledger.entries(subject_id=run_id))
    adopted = [entry.content["last_seq"] for entry in entries if entry.kind == EntryKind.RUN_ADOPTED]
    return RunEvidence(
        run_id=run_id,
        plan_digest=view.plan.digest,
        plan=root.read_bytes(plan_key(view.plan.digest)),
        table=view.plan.input.table,
        today=trace.today,
        events=[_event(encode(event), policy) for event in at.state.stores.reader.raw_events(run_id)],
        unsealed=int(str(adopted[0])) if adopted else 0,
        ledger=[encode(entry) for entry in entries],
        descriptions=descriptions,
        parts=trace.parts,
        facts=view.to_json(),
    )


def _event(told: Json, policy: PrivacyPolicy) -> Json:
    """An event as the principal may see it, with a mark where it quotes values that they may not see."""
    seen = as_seen(policy, told)
    return seen if seen == told else {**seen, "withheld": True}


def _document(
    at: OpenedEnvironment,
    record: RunRecord,
    made: Json,
    runs: Mapping[str, RunEvidence],
    pairs: Sequence[ExplainedPair],
    key: EvidenceKey,
) -> Json:
    own = runs[record.run_id]
    return {
        "form": "clew evidence pack",
        "version": 1,
        "made": made,
        "key": key.fingerprint,
        "run": own.facts,
        "environment": _environment(at.environment.settings, own),
        "resolved": [each.to_json() for each in resolver_snapshots(at.runs.view(record.run_id).plan, own.parts)],
        "sources": [source for each in runs.values() for source in each.sources()],
        "runs": {run_id: each.index() for run_id, each in runs.items()},
        "explanations": [
            {
                "member": _member(number),
                "run_id": pair.seen.run_id,
                "row_id": pair.seen.row_id,
                "column": pair.seen.column,
            }
            for number, pair in enumerate(pairs, 1)
        ],
    }


def _environment(settings: Environment, run: RunEvidence) -> Json:
    """With what the run was made, and with what this pack. Nothing that looks like a secret."""
    wrote = sorted({str(event["adapter_version"]) for event in run.events})
    config = {name: "not shown" if _SECRET.search(name) else value for name, value in settings.spark.config.items()}
    return {
        "clew of the run": ", ".join(wrote),
        "engine of the run": next((event["engine_run_ref"] for event in run.events if event["engine_run_ref"]), None),
        "clew": version("clew"),
        "python": platform.python_version(),
        "platform": sys.platform,
        "pyspark": _installed("pyspark"),
        "duckdb": _installed("duckdb"),
        "pyarrow": _installed("pyarrow"),
        "settings": {"mode": settings.mode.value, "spark": {"master": settings.spark.master, "config": config}},
    }


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _texts(at: OpenedEnvironment, record: RunRecord) -> dict[str, str]:
    """The files of the project: as its version has them, where versions keep them, else as they are now."""
    if not at.is_own_tenant:
        return {}
    plan, request, files = at.runs.view(record.run_id).plan, record.request, at.source.current()
    project = next((each for each in files.loaded.workspace.projects if each.id == request.project_id), None)
    named = {step.place.file for step in plan.steps if step.place} if plan is not None else set[str]()
    texts = {name: text for name in sorted(named) if (text := files.source_of(name)) is not None}
    if project is not None:
        kept = at.state.projects.project_versions(project.id)
        own = next((each.definition for each in kept if str(each.version) == request.project_version), None)
        text = own or files.source_of(project.file)
        texts |= {project.file: text} if text is not None else {}
    return texts


def _checkpoints(at: OpenedEnvironment, run: RunEvidence) -> bytes:
    """The first checkpoint after the run ended, which shows that its end was there then, and the last one."""
    ended = max((int(str(entry["seq"])) for entry in run.ledger), default=0)
    kept = [each for each in kept_checkpoints(checkpoint_file(at.environment)) if not isinstance(each, str)]
    after = [each for each in kept if each.seq >= ended]
    shown = [*after[:1], *after[1:][-1:]]
    return "".join(f"{canonical_json(encode(each))}\n" for each in shown).encode()
