"""What a trace id stands for: a frame of a stream, a row of a run, a line of a file."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedFrame:
    """One frame of a trace, as a stage published it."""

    trace_id: int
    stream_id: int
    epoch: int
    seq: int
    stage_id: int = 0
    t_ns: int = 0
    """When it was published, in nanoseconds since 1970; 0 where nobody said."""
    status: int = 0

    @property
    def text(self) -> str:
        """The frame in one line."""
        return f"stream {self.stream_id}, epoch {self.epoch}, seq {self.seq}"

    def to_json(self) -> dict[str, object]:
        """The frame as a JSON document."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePlace:
    """A place that a trace was at, as far as whoever tells it knows. What does not apply is None."""

    trace_id: int
    run_id: str | None = None
    project: str | None = None
    period: str | None = None
    operation_seq: int | None = None
    """The step that made the row, 0 for one that was loaded."""
    step_name: str | None = None
    row_id: str | None = None
    dataset: str | None = None
    file: str | None = None
    """Where a source row was read from: a path as the workspace writes it, or a table."""
    line: int | None = None
    note: str | None = None
    """Something else worth a few words, an artifact that was in use then for one."""

    @property
    def text(self) -> str:
        """The place in one line, the source first."""
        return ", ".join(part for part in (self._source(), self._row(), self._run(), self.note) if part)

    def to_json(self) -> dict[str, object]:
        """What is known of the place as a JSON document."""
        known = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in known if value is not None}

    def _source(self) -> str | None:
        if self.file is None:
            return self.dataset
        return self.file if self.line is None else f"{self.file} line {self.line}"

    def _row(self) -> str | None:
        return None if self.row_id is None else f"row {self.row_id}"

    def _run(self) -> str | None:
        if self.run_id is None:
            return None
        steps = {None: "", 0: ", loaded"}
        step = steps.get(self.operation_seq, f", step {self.operation_seq}")
        named = f" {self.step_name}" if self.step_name and self.operation_seq else ""
        about = " ".join(word for word in (self.project, self.period) if word)
        return f"run {self.run_id[:8]}" + (f" ({about})" if about else "") + step + named
