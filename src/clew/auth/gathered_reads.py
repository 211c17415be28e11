"""What was read, in the words of the record: what was asked for, and which columns of how many rows were returned."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field

from clew.auth.access_log import Subject
from clew.deferred import dataclass


@dataclass(frozen=True, slots=True)
class ReturnedRows:
    """An answer with values of rows."""

    subject: Subject
    subject_id: str
    asked: str
    columns: tuple[str, ...]
    rows: Collection[str] | int
    """What identifies the rows, or how many there are."""


def read_in_words(asked: str, returned: Sequence[ReturnedRows]) -> str:
    """A question, how many rows were the answer, each counted once, and of which columns."""
    if not returned:
        return f"{asked}; returned nothing"
    named = {row for each in returned if not isinstance(each.rows, int) for row in each.rows}
    rows = len(named) + sum(each.rows for each in returned if isinstance(each.rows, int))
    columns = ", ".join(dict.fromkeys(name for each in returned for name in each.columns))
    return f"{asked}; returned {rows:,} row{'' if rows == 1 else 's'}{f' of {columns}' if columns else ''}"


@dataclass(slots=True)
class GatheredReads:
    """What one request asks for, and what it gets: one record for each thing that it asks about."""

    _asked: list[tuple[Subject, str, str]] = field(default_factory=list)
    _returned: list[ReturnedRows] = field(default_factory=list)

    def ask(self, subject: Subject, subject_id: str, detail: str) -> None:
        """Note a question. It is on record even if the answer is an error, or what the caller has already."""
        self._asked.append((subject, subject_id, detail))

    def add(self, returned: ReturnedRows) -> None:
        """Note an answer."""
        self._returned.append(returned)

    def details(self) -> Iterator[tuple[Subject, str, str]]:
        """What to record. Answers to questions that were not announced are recorded, too."""
        for subject, subject_id, detail in self._asked:
            found = [each for each in self._returned if each.subject_id == subject_id]
            yield subject, subject_id, read_in_words(detail, found)
        known = {subject_id for _, subject_id, _ in self._asked}
        for each in self._returned:
            if each.subject_id not in known:
                yield each.subject, each.subject_id, read_in_words(each.asked, [each])
