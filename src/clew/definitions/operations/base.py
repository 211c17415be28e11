"""What all operations have, and what is asked about an operation whatever its type."""

from clew.definitions.dataset_refs import DatasetRef
from clew.definitions.expression_text import ExpressionText
from clew.definitions.postlude import AFTER_REQUEST, Job
from clew.definitions.shapes import NAME, SELECTOR, TEXT, Located, Whole, key, record

MOST_SEQ = 999_999_999
"""The largest seq that can be written: it still fits the whole numbers of every store after fragments are put in."""


@record("an operation")
class OperationBase(Located):
    """What all operations have. The answers below are those of an operation that names nothing."""

    id: str | None = key(NAME, "The id.", default=None)
    seq: int = key(Whole(1, MOST_SEQ), "The position: operations run in the order of their seq. Gaps are allowed.")
    name: str = key(NAME, "What the operation does, in words.")
    description: str = key(TEXT, "Why it does so.", default="")
    selector: ExpressionText | None = key(
        SELECTOR,
        "Which rows it acts on; by default all that are not deleted. {{NAME}} is a named selector.",
        default=None,
    )
    assign: str | None = key(TEXT, "A label that makes the point after this operation a breakpoint.", default=None)
    after_request: tuple[Job, ...] = key(
        AFTER_REQUEST, "Jobs on the rows at this point, which run after the run ends.", default=()
    )

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets that it reads beside the working dataset."""
        return ()

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names under which its expressions see other datasets."""
        return ()

    @property
    def columns_set(self) -> tuple[str, ...]:
        """The columns that it sets, as they are written; they may be new."""
        return ()

    @property
    def registers(self) -> str | None:
        """The dataset that it makes a version of."""
        return None

    @property
    def datasource(self) -> str | None:
        """The datasource that it writes to."""
        return None
