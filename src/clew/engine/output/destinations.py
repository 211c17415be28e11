"""Where the outputs of a run go: under the root of their datasource, or for a draft into the sandbox."""

from collections.abc import Callable, Iterator
from pathlib import Path

from clew.deferred import dataclass
from clew.definitions import CatalogDatasource, DatabaseDatasource, FilesDatasource, Period, WorkspaceDefinitions
from clew.definitions.references import NO_URL, written_over, written_over_remotely
from clew.definitions.storage_addresses import is_remote
from clew.definitions.storage_addresses import shown as shown_address
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.engine.output.attempts import OutputAttempt
from clew.engine.output.catalog_targets import CatalogTarget
from clew.engine.output.listed_names import LISTED, listed_in
from clew.engine.output.places import NAMES_OF_OUTPUTS, LocalOutput, OutputPlace, RunIsUnderWay
from clew.engine.output.stored_places import StoredOutput
from clew.engine.output.tables import TableTarget
from clew.lang.types import Type
from clew.plan import Plan
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.datasets import TableAddress
from clew.plan.local_files import local_folder
from clew.plan.operations import OutputStep
from clew.plan.resolution import fill_template
from clew.plan.sources_written import Place, Reads, clash
from clew.runs.secrets import REFERENCE
from clew.storage.root import StorageKey, StorageRoot
from clew.storage.source_files import RootOf

_REPLACED = {"parquet", "csv", "json", "jsonl", "orc"}
"""Formats whose folder is replaced as a whole; others look after what is in it."""


@dataclass(frozen=True, slots=True)
class Destinations:
    """The places of one run's outputs."""

    workspace: WorkspaceDefinitions
    period: Period
    run_id: str
    plan: Plan
    sandbox: StorageRoot | None
    """The sandbox of the environment, where the run is one of a draft."""
    secret: Callable[[str], str]
    """The secret that a reference names."""

    storage_of: RootOf
    """The root of a datasource."""

    is_under_way: RunIsUnderWay = lambda _run_id: True

    def place_of(self, step: OutputStep, fence: int) -> OutputPlace | None:
        """The place of a step's files, for a worker that has the run under a token; None where they go to a table."""
        destination = step.destination
        if self.sandbox is not None:
            name = destination.path or f"{destination.table}"
            below = f"{self.plan.name}/{self.run_id}/{step.seq}/{Path(self._filled(name)).name}"
            if is_remote(self.sandbox.address):
                return self._stored(self.sandbox, below, step, fence)
            return self._place(Path(self.sandbox.address) / below, step, fence)
        if destination.table is not None:
            return None
        datasource = self._files_datasource(step)
        if datasource is not None and is_remote(datasource.options.root):
            written = self._filled(destination.path or "")
            self._require_unread(step, Reads(self.workspace).place(destination, written), written)
            self._require_not_managed(step, datasource, written)
            return self._stored(self.storage_of(datasource), written, step, fence)
        return self._place(self._path(step), step, fence)

    def catalog_table_of(self, step: OutputStep, fence: int) -> CatalogTarget | None:
        """The table of a catalog that a step writes to; None where it goes elsewhere."""
        destination = step.destination
        datasource = self.workspace.datasource(destination.datasource_id) if destination.datasource_id else None
        if self.sandbox is not None or destination.table is None or not isinstance(datasource, CatalogDatasource):
            return None
        name = self._filled(destination.table)
        pieces = datasource.full_name(name)
        if pieces is None or len(pieces) < 3:
            problem, hint = f'"{name}" is not the name of a table', "write schema.table, or catalog.schema.table"
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=hint))
        return CatalogTarget(datasource, pieces, OutputAttempt.of(self.run_id, step.seq, fence), self._options(step))

    def _stored(self, root: StorageRoot, key: StorageKey, step: OutputStep, fence: int) -> OutputPlace:
        attempt = OutputAttempt.of(self.run_id, step.seq, fence)
        shown = f"{root.address}/{key}"
        return StoredOutput(root, key, shown, attempt, self.is_under_way, self._options(step))

    def _require_not_managed(self, step: OutputStep, datasource: FilesDatasource, written: str) -> None:
        over = written_over_remotely(self.workspace, datasource.options.root, written)
        if over is not None:
            problem = f"an output to {written} would write over {over}, which the workspace needs"
            hint = "choose a folder that nothing else is in"
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=hint))

    def _place(self, path: Path, step: OutputStep, fence: int) -> OutputPlace:
        attempt = OutputAttempt.of(self.run_id, step.seq, fence)
        return LocalOutput(path, self._shown(path), attempt, self.is_under_way, self._options(step))

    def _options(self, step: OutputStep) -> dict[str, str]:
        """The options of a destination with the values of the secrets that they refer to."""
        return {
            name: self.secret(value) if value.startswith(REFERENCE) else value
            for name, value in step.destination.options
        }

    def table_of(self, step: OutputStep) -> TableTarget:
        """The table that a step writes to, with the password of its database."""
        name = step.destination.datasource_id
        datasource = self.workspace.datasource(name) if name is not None else None
        if not isinstance(datasource, DatabaseDatasource):
            kind = "does not exist" if datasource is None else f"is of the type {datasource.type}"
            problem = f'the datasource "{name}" {kind}, and the output has a table'
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem))
        options, reference = datasource.options, datasource.credential_ref
        password = self.secret(reference) if reference is not None else None
        table = self._filled(step.destination.table or "")
        self._require_unread(step, Reads(self.workspace).place(step.destination, table), table)
        return TableTarget(TableAddress(options.url, options.schema, table, password), options.driver)

    def columns_of(self, step: OutputStep) -> list[tuple[str, Type]]:
        """The columns that a step writes, with their types."""
        types = {column.name: column.type for column in self.plan.columns_after(step.seq)}
        return [(name, types.get(name) or SYSTEM_COLUMNS[name]) for name in step.columns]

    def _path(self, step: OutputStep) -> Path:
        written = self._filled(step.destination.path or "")
        datasource = self._files_datasource(step)
        if is_remote(written):
            problem = f'an output cannot go to the URL "{shown_address(written)}"'
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=NO_URL))
        root = self.workspace.root
        if datasource is not None:
            folder = local_folder(datasource, root)
            assert folder is not None  # noqa: S101 - others are written to as stores
            root = folder
        path = (root / written).resolve()
        if not path.is_relative_to(root.resolve()):
            problem = f'the output path "{written}" leads out of its root'
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint="keep it below the datasource's root"))
        self._require_unread(step, Reads.local_place(path), self._shown(path))
        self._require_own_place(step, path)
        return path

    def _files_datasource(self, step: OutputStep) -> FilesDatasource | None:
        name = step.destination.datasource_id
        datasource = self.workspace.datasource(name) if name is not None else None
        if name is not None and not isinstance(datasource, FilesDatasource):
            kind = "does not exist" if datasource is None else f"is a {datasource.type}"
            problem = f'the datasource "{name}" {kind}, and the output has a path'
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem))
        return datasource if isinstance(datasource, FilesDatasource) else None

    def _require_unread(self, step: OutputStep, place: Place | None, shown: str) -> None:
        """Definitions may have changed since the project was activated, and links may lead to the same place."""
        dataset = Reads(self.workspace).reader(place, step) if place is not None else None
        if dataset is not None:
            raise UserError(clash(step, shown, dataset))

    def _require_own_place(self, step: OutputStep, path: Path) -> None:
        """Replacing a folder deletes everything in it, so nothing else may be in it."""
        over = written_over(self.workspace, path)
        if over is None and step.mode == "overwrite" and step.destination.format in _REPLACED:
            over = next(_strangers(path), None)
        if over is not None:
            problem = f"an output to {self._shown(path)} would delete {over}, which no output wrote"
            hint = "choose a folder that nothing else is in, or move the file elsewhere"
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=hint))

    def _filled(self, template: str) -> str:
        return fill_template(template, self.plan.input, self.period)

    def _shown(self, path: Path) -> str:
        root = self.workspace.root.resolve()
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _strangers(folder: Path) -> Iterator[str]:
    """Files below a folder that Spark does not name as it names those of an output, and that no output has listed."""
    if folder.is_dir():
        ours = {name for each in folder.glob(f"{LISTED}*") for name in listed_in(each.read_bytes())}
        for each in sorted(folder.rglob("*")):
            name = each.relative_to(folder).as_posix()
            if not each.name.startswith(NAMES_OF_OUTPUTS) and name not in ours and not each.is_dir():
                yield name
