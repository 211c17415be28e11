"""What an environment allows captures and postlude jobs to keep."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.debug.requests import Limits
from clew.model import CaptureMode, Environment, Mask
from clew.model.settings import EnvironmentMode, PersonalColumns, Sink, SinkType

LARGE_COLUMN_BYTES = 1024
"""In prod a column with more bytes than this per row, on average, is left out unless it is asked for by its name."""

_USUAL_MODES = {
    EnvironmentMode.DEV: (CaptureMode.FULL_RAW, CaptureMode.FULL_VIEW),
    EnvironmentMode.PROD: (CaptureMode.SAMPLE_RAW, CaptureMode.STATS, CaptureMode.SAMPLE_VIEW),
}
"""What a capture keeps that does not say, as far as it is allowed."""


@dataclass(frozen=True, slots=True)
class CapturePolicy:
    """The rules of one environment, for somebody in one role."""

    environment: str
    is_prod: bool
    modes: tuple[CaptureMode, ...]
    limits: Limits
    ttl_days: int
    max_inflight_bytes: int
    max_inflight_jobs: int
    personal: PersonalColumns
    mask: Mask
    include_roles: tuple[str, ...]
    sinks: Mapping[str, Sink]
    role: str

    @classmethod
    def of(cls, name: str, environment: Environment, role: str) -> "CapturePolicy":
        """The rules that clew.yaml gives."""
        captures = environment.captures
        return cls(
            environment=name,
            is_prod=environment.mode is EnvironmentMode.PROD,
            modes=environment.capture_modes,
            limits=Limits(captures.max_bytes, captures.max_rows, captures.max_columns),
            ttl_days=captures.ttl_days,
            max_inflight_bytes=captures.max_inflight_bytes,
            max_inflight_jobs=captures.max_inflight_jobs,
            personal=captures.personal_columns,
            mask=captures.mask,
            include_roles=captures.include_roles,
            sinks=environment.sinks,
            role=role,
        )

    @property
    def usual_mode(self) -> CaptureMode | None:
        """What a capture keeps that does not say; None where nothing may be kept."""
        kind = EnvironmentMode.PROD if self.is_prod else EnvironmentMode.DEV
        return next((mode for mode in (*_USUAL_MODES[kind], *self.modes) if mode in self.modes), None)

    @property
    def may_ask_for_personal(self) -> bool:
        """Whether the role may have personal columns as they are, if it asks for them by name."""
        if self.role in self.include_roles:
            return True
        return self.personal is PersonalColumns.INCLUDE and not self.include_roles

    @property
    def shows_personal(self) -> bool:
        """Whether personal columns come along as they are without being asked for."""
        return self.personal is PersonalColumns.INCLUDE and self.may_ask_for_personal

    def store(self, sink: str, type_: SinkType) -> Sink | None:
        """A sink of the environment, None where it has none of this id and type."""
        found = self.sinks.get(sink)
        return found if found is not None and found.type is type_ else None
