"""Datasets as contracts of the Open Data Contract Standard, and contracts as datasets."""

from pathlib import Path

from clew.api.workspace_files import WorkspaceFiles
from clew.deferred import dataclass
from clew.definitions.contract_export import contract_text
from clew.definitions.contract_import import imported_datasets
from clew.definitions.kinds import read_source
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.commands import FILE_SYSTEM_FAILED
from clew.diagnostics.codes.workspace import DUPLICATE_ID, UNKNOWN_DATASET

_FOLDER = "datasets"


@dataclass(frozen=True, slots=True)
class WrittenDataset:
    """A dataset that was made of a contract."""

    id: str
    file: str
    notes: tuple[str, ...]
    """What the contract says and the dataset does not."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew contract import --json`."""
        return {"dataset": self.id, "file": self.file, "notes": list(self.notes)}


def exported_contract(files: WorkspaceFiles, dataset: str) -> str:
    """The contract of a dataset that the workspace defines, as YAML. Raises UserError UnknownDataset."""
    found = files.loaded.workspace.dataset(dataset)
    if found is None:
        known = [each.id for each in files.loaded.workspace.datasets]
        raise UserError(UNKNOWN_DATASET.anywhere(name=dataset, hint=did_you_mean(dataset, known)))
    return contract_text(found)


def import_contract(files: WorkspaceFiles, contract: Path, *, replace: bool) -> tuple[WrittenDataset, ...]:
    """Write the datasets of a contract into the workspace.

    Nothing is written if one of them would be wrong, or is defined already and must not be replaced.
    """
    source = read_source(contract.absolute(), contract.absolute().parent)
    datasets = imported_datasets(source.text, str(contract))
    targets = [_target(files, each.id, replace=replace) for each in datasets]
    for each, target in zip(datasets, targets, strict=True):
        path = files.root / target
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_text(each.text, encoding="utf-8")
        except OSError as error:
            raise UserError(FILE_SYSTEM_FAILED.anywhere(place=target, reason=error.strerror or str(error))) from error
    return tuple(WrittenDataset(each.id, target, each.notes) for each, target in zip(datasets, targets, strict=True))


def _target(files: WorkspaceFiles, dataset: str, *, replace: bool) -> str:
    """Where a dataset is written: where it is defined already, else to a file of its own."""
    defined = files.loaded.workspace.dataset(dataset)
    target = defined.span.file if defined is not None else f"{_FOLDER}/{dataset}.yaml"
    if not replace and (files.root / target).exists():
        hint = "--replace (replace=True in Python) writes over its file"
        raise UserError(DUPLICATE_ID.anywhere(kind="dataset", id=dataset, first=target, hint=hint))
    return target
