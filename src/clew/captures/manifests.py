"""Where captures lie, and the manifest beside their rows."""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from clew.captures.freezing import Degradation
from clew.captures.requests import OmittedColumn
from clew.captures.salt import salt_of
from clew.deferred import dataclass
from clew.definitions import CaptureMode
from clew.definitions.storage_addresses import is_remote
from clew.events.codec import decode, encode
from clew.runs.environment import RunEnvironment
from clew.storage.layout import CAPTURES
from clew.storage.root import StorageKey, StorageRoot

DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of an environment that captures go to."""

    environment: RunEnvironment

    def captures(self, store: str | None, *, project_version: str | None = None) -> StorageRoot:
        """A capture store, or the captures of the environment's own storage where none is named."""
        return self._own if store is None else self.sink(store, project_version)

    @property
    def _own(self) -> StorageRoot:
        return self.environment.storage_root.below(CAPTURES)

    def sink(self, sink: str, project_version: str | None) -> StorageRoot:
        """The folder of a sink. A draft has a separate one in the sandbox."""
        if project_version == DRAFT:
            return self.environment.sandbox_root.below(f"sinks/{sink}")
        return self.environment.storage(self.environment.settings.sinks[sink].path)

    def shown(self, place: StorageRoot) -> str:
        """A place as manifests name it: its path from the workspace on, or its address."""
        if is_remote(place.address):
            return place.address
        return Path(os.path.relpath(place.address, self.environment.root)).as_posix()

    def at(self, shown: str) -> StorageRoot:
        """The place that `shown` gave."""
        address = shown if is_remote(shown) else os.path.normpath(self.environment.root / shown)
        return self.environment.storage(str(address))

    def within(self, shown: str) -> tuple[StorageRoot, StorageKey]:
        """A file or a folder that `shown` gave: the place that it lies in, and its name there."""
        folder, _, name = shown.rpartition("/")
        return self.at(folder or "."), name

    def salt(self) -> str:
        """The salt for digests of masked values: known to this environment only, and always the same."""
        return salt_of(self.environment)


MANIFEST_FORMAT = 1


@dataclass(frozen=True, slots=True)
class CapturedColumn:
    """A column in the files of a capture."""

    name: str
    type: str
    mask: str | None = None


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A file of a capture, relative to its folder."""

    path: str
    rows: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything about a capture that can be said without reading its rows."""

    format: int = MANIFEST_FORMAT
    capture_id: str
    run_id: str
    request_id: str
    environment: str
    project: str
    period: str
    breakpoint: str
    seq: int
    plan_digest: str
    mode: CaptureMode
    """What was kept."""
    asked: CaptureMode
    """What was asked for."""
    degradations: tuple[Degradation, ...] = ()
    columns: tuple[CapturedColumn, ...]
    left_out: tuple[OmittedColumn, ...] = ()
    natural_key: tuple[str, ...] = ()
    rows: int
    """Rows in the files; for statistics, the rows that they are of."""
    size: int
    files: tuple[CapturedFile, ...]
    digest: str
    """SHA-256 over the digests of the files."""
    statistics: Mapping[str, object] | None = None
    """Where no rows are kept."""
    folder: str
    """Relative to the workspace."""
    store: str | None = None
    job_id: str | None = None
    """The postlude job that made it."""
    shows_personal: bool = False
    estimated_bytes: int = 0
    freeze_us: int = 0
    """How long freezing the point took."""
    wait_ms: int = 0
    """From the request to the start of the work."""
    write_ms: int = 0
    attempts: int = 1
    frozen_at: datetime | None = None
    created_at: datetime
    expires_at: datetime

    @property
    def keeps_rows(self) -> bool:
        """Whether there are rows to look at."""
        return self.mode is not CaptureMode.STATS

    @property
    def is_raw(self) -> bool:
        """Whether deleted rows and positions are kept."""
        return self.mode in {CaptureMode.FULL_RAW, CaptureMode.SAMPLE_RAW}

    def to_json(self) -> dict[str, object]:
        """The form of `manifest.json`."""
        document: dict[str, object] = encode(self)
        return document

    def to_bytes(self) -> bytes:
        """The content of `manifest.json`."""
        return json.dumps(self.to_json(), indent=1, sort_keys=True).encode()

    @classmethod
    def from_json(cls, document: object) -> "Manifest":
        """The manifest that `to_json` gave."""
        return decode(cls, document)
