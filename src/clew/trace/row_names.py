"""The rows of one run by the names that people know them by."""

from collections.abc import Mapping

from clew.lang.typed import Value
from clew.plan.row_names import Names, name_of, names_of_created, names_of_dataset
from clew.trace.identity import place_of
from clew.trace.run_parts import RunParts


class RowNames:
    """Names rows by their values. Which columns do so follows from where the row was loaded or created."""

    def __init__(self, run: RunParts) -> None:
        self._run = run
        self._by_file = dict[int | None, Names]()
        for part in run.created:
            names = names_of_created(run.plan, run.step(part.seq))
            self._by_file.update((file.ordinal, names) for file in part.files)
        self._loaded = names_of_dataset(run.plan.input)

    def columns(self, at: int) -> list[str]:
        """The columns of rows after a step that a name may need."""
        known = {name for name, _ in self._run.columns(at)}
        keys = [self._loaded, *self._by_file.values()]
        return sorted({column for names in keys for key in names for column in key if column in known})

    def name(self, ordinal: int | None, cells: Mapping[str, Value]) -> str:
        """What the row with an ordinal is called; nothing where its values do not tell."""
        number = None if ordinal is None else place_of(ordinal)[0]
        return name_of(cells, self._by_file.get(number, self._loaded))
