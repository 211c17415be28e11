"""What a capture is, beside its rows: a manifest that lies in its folder and in the state store."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from clew.captures.fitting import Degradation
from clew.captures.requests import OmittedColumn
from clew.definitions import CaptureMode
from clew.events.codec import decode, encode

MANIFEST_FILE = "manifest.json"
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

    @classmethod
    def from_json(cls, document: object) -> "Manifest":
        """The manifest that `to_json` gave."""
        return decode(cls, document)
