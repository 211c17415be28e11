"""The columns of one dataset or run as a role sees them: values, states, names of rows, and conditions over them."""

from collections.abc import Iterable, Mapping
from dataclasses import field

from clew.deferred import dataclass
from clew.definitions import Mask
from clew.definitions.privacy import Sight
from clew.diagnostics import Diagnostic, PlainText, Span, UserError
from clew.diagnostics.codes.questions import CONDITION_TOO_LONG
from clew.diagnostics.codes.trace import COLUMN_NOT_VISIBLE
from clew.lang import parse
from clew.lang.conversion import to_text
from clew.lang.lexer import TokenKind, tokenize
from clew.lang.syntax import Reference, walk
from clew.lang.typed import Value
from clew.lang.types import STRING, Type
from clew.plan.datasets import DatasetUse, PrivacyName
from clew.plan.names import RowName
from clew.plan.operations import Step
from clew.plan.plan import Plan
from clew.plan.privacy import classes_of, privacy_of_dataset
from clew.privacy.masking import NOT_SHOWN, REDACTION, masked, masks_of_loaded, masks_of_plan
from clew.privacy.policy import PrivacyPolicy

WHERE = "<where>"
"""What places in a condition name as their file."""

ALWAYS_SEEN = frozenset({"_row_id", "_deleted", "_period"})
"""Columns of Clew's own, which say where a row stands and nothing about what is in it."""

LONGEST_CONDITION = 10_000
"""In characters. Conditions are recorded whole, so that none hides behind its own length."""

_LITERALS = frozenset({TokenKind.NUMBER, TokenKind.STRING})


@dataclass(frozen=True, slots=True)
class ColumnEyes:
    """Columns, and how a role sees each of them."""

    policy: PrivacyPolicy
    classes: Mapping[str, PrivacyName]
    """The class of each column that is not public."""
    masks: Mapping[str, Mask]
    chosen: frozenset[str] = frozenset()
    """Columns that are restricted only since a restricted one chose their values."""

    def sight(self, column: str) -> Sight:
        """How the role sees a column."""
        return Sight.CLEAR if column in ALWAYS_SEEN else self.policy.sight(self.classes.get(column))

    def is_clear(self, column: str) -> bool:
        """Whether the role sees a column as it is."""
        return self.sight(column) is Sight.CLEAR

    def value(self, column: str, value: Value) -> Value:
        """A value as the role sees it, where something must stand in its place."""
        match self.sight(column):
            case Sight.CLEAR:
                return value
            case Sight.MASKED:
                return self._masked(column, value)
            case Sight.HIDDEN:
                return NOT_SHOWN

    def state(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Values by column as the role sees them; hidden columns are left out."""
        return {name: self.value(name, value) for name, value in values.items() if self.sight(name) is not Sight.HIDDEN}

    def columns(self, columns: Iterable[tuple[str, Type]]) -> tuple[tuple[str, Type], ...]:
        """Columns as the role sees them: without hidden ones, and masked ones as texts."""
        shown = [(name, type_, self.sight(name)) for name, type_ in columns]
        return tuple(
            (name, STRING if sight is Sight.MASKED else type_)
            for name, type_, sight in shown
            if sight is not Sight.HIDDEN
        )

    def label(self, label: str) -> str:
        """The name of a row as the role sees it; empty where nothing of it may be seen.

        Only names that keep the values they are made of can be judged. Any other text counts as one that may not be
        seen, if the role does not see everything.
        """
        if not isinstance(label, RowName):
            return label if self._sees_everything() else ""
        if all(self.is_clear(name) for name, _ in label.cells):
            return label
        seen = "/".join(to_text(value) for value in self.state(dict(label.cells)).values())
        return f"{seen}{label.suffix}" if seen and self.policy.sees_clearly(None) else seen

    def require(self, column: str, purpose: str, place: Span | None = None) -> None:
        """Raise UserError ColumnNotVisible if the role does not see a column as it is."""
        if not self.is_clear(column):
            raise UserError(self._refusal(column, purpose, place))

    def require_condition(self, where: str | None, purpose: str = "filter by") -> None:
        """Raise UserError ColumnNotVisible if a condition reads a column that the role does not see as it is.

        Looks at names as they are written, in whatever case: a condition must not tell by its errors, either.
        """
        if where is None:
            return
        if len(where) > LONGEST_CONDITION:
            raise UserError(CONDITION_TOO_LONG.anywhere(length=len(where), most=LONGEST_CONDITION))
        names = {name.casefold(): name for name in self.classes}
        problems = [
            self._refusal(column, purpose, node.region.span)
            for node in walk(parse(PlainText(where, WHERE)))
            if isinstance(node, Reference)
            for column in [names.get(node.column.casefold(), node.column)]
            if not self.is_clear(column)
        ]
        if problems:
            raise UserError(*problems)

    def recorded(self, where: str) -> str:
        """A condition for records that others read: without literals, if it names a column that is not public."""
        try:
            tokens = tokenize(PlainText(where, WHERE))
        except UserError:
            return where if not self.classes else NOT_SHOWN
        names = {name.casefold() for name in self.classes}
        if not any(str(token.value).casefold() in names for token in tokens if token.kind not in _LITERALS):
            return where
        pieces, done = list[str](), 0
        for token in tokens:
            if token.kind in _LITERALS:
                pieces += [where[done : token.start], "…"]
                done = token.end
        return "".join([*pieces, where[done:]])

    def _masked(self, column: str, value: Value) -> str | None:
        if column in self.chosen:
            return REDACTION  # whether there is a value at all is what the selector decided
        return masked(value, self.masks.get(column, self.policy.mask), self.policy.salt())

    def _sees_everything(self) -> bool:
        return all(self.policy.sees_clearly(privacy) for privacy in (None, *self.classes.values()))

    def _refusal(self, column: str, purpose: str, place: Span | None) -> Diagnostic:
        privacy = self.classes.get(column, "public")
        return COLUMN_NOT_VISIBLE.at(
            place,
            column=column,
            privacy=privacy,
            role=self.policy.role.value,
            purpose=purpose,
            sight=self.sight(column),
        )


@dataclass(frozen=True, slots=True)
class RunEyes:
    """A run as a role sees it: the columns of its working dataset, and of the datasets that it read."""

    policy: PrivacyPolicy
    plan: Plan
    working: ColumnEyes
    _datasets: dict[str, ColumnEyes] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: PrivacyPolicy, plan: Plan) -> "RunEyes":
        """The eyes of a role on a run with a plan."""
        classes = classes_of(plan, marks=policy.marks, influenced=policy.influenced)
        masks = masks_of_plan(plan, classes, policy.mask)
        return cls(policy, plan, ColumnEyes(policy, classes.all(), masks, classes.merely_chosen()))

    def dataset(self, use: DatasetUse) -> ColumnEyes:
        """The columns of a dataset that the run read."""
        if use.key not in self._datasets:
            classes = privacy_of_dataset(use, self.policy.marks)
            self._datasets[use.key] = ColumnEyes(self.policy, classes, masks_of_loaded(classes, self.policy.mask))
        return self._datasets[use.key]

    def step(self, seq: int) -> Step:
        """A step of the plan."""
        return next(step for step in self.plan.steps if step.seq == seq)
