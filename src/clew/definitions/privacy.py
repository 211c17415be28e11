"""Who sees the values of which columns: the privacy settings of an environment.

Columns are `public`, `personal` or `secret`. Each role sees a class as it is, masked, or not at all.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import pairwise

from clew.definitions.shapes import Choice, Located, Record, key, record
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE


class Sight(StrEnum):
    """How values are seen."""

    CLEAR = "clear"
    """As they are."""
    MASKED = "masked"
    """Present, but masked: a hash, or what the environment's mask leaves."""
    HIDDEN = "hidden"
    """Not at all: the column is left out."""


class RoleName(StrEnum):
    """The roles that an environment speaks of."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    ENGINEER = "engineer"
    ADMIN = "admin"


class InfluencedColumns(StrEnum):
    """What a selector or a join condition on a restricted column makes of the columns that it decides about."""

    SAME = "same"
    """They are restricted, too."""
    PUBLIC = "public"
    """They are not."""


CLASSES = ("public", "personal", "secret")
"""The classes of columns, from the least restricted to the most."""

_ORDER = tuple(Sight)
"""From the most that is seen to the least."""

_USUAL: Mapping[RoleName, tuple[Sight, Sight, Sight]] = {
    RoleName.VIEWER: (Sight.HIDDEN, Sight.HIDDEN, Sight.HIDDEN),
    RoleName.OPERATOR: (Sight.CLEAR, Sight.MASKED, Sight.HIDDEN),
    RoleName.AUDITOR: (Sight.CLEAR, Sight.MASKED, Sight.HIDDEN),
    RoleName.ENGINEER: (Sight.CLEAR, Sight.MASKED, Sight.HIDDEN),
    RoleName.ADMIN: (Sight.CLEAR, Sight.CLEAR, Sight.MASKED),
}
"""What roles see of each class unless the environment says otherwise."""


@record("the sight of a role")
class RoleSight(Located):
    """How one role sees the values of each class."""

    public: Sight | None = key(Choice(Sight), "How it sees columns without a privacy class.", default=None)
    personal: Sight | None = key(Choice(Sight), "How it sees personal columns.", default=None)
    secret: Sight | None = key(Choice(Sight), "How it sees secret columns.", default=None)

    def of(self, role: RoleName) -> Mapping[str, Sight]:
        """The sight of every class, with the defaults of the role."""
        given = (self.public, self.personal, self.secret)
        return {name: own or usual for name, own, usual in zip(CLASSES, given, _USUAL[role], strict=True)}

    def problems(self, role: RoleName) -> Iterator[Diagnostic]:
        """A class must not show more than a less restricted one.

        A column made from both has the stricter class, and would show what the other one hides.
        """
        seen = self.of(role)
        for lower, higher in pairwise(CLASSES):
            if _ORDER.index(seen[higher]) < _ORDER.index(seen[lower]):
                named = higher if getattr(self, higher) is not None else lower
                problem = f"{role} would see {higher} columns {seen[higher]}, but {lower} columns {seen[lower]}"
                hint = f"set {lower} to {seen[higher]} too, or {higher} to {seen[lower]}"
                yield INVALID_VALUE.at(self.place(named), problem=problem, hint=hint)


@record("the sights of roles")
class RoleSights(Located):
    """How each role sees the values of each class."""

    viewer: RoleSight = key(Record(RoleSight), "What viewers see.", default_factory=RoleSight)
    operator: RoleSight = key(Record(RoleSight), "What operators see.", default_factory=RoleSight)
    auditor: RoleSight = key(Record(RoleSight), "What auditors see.", default_factory=RoleSight)
    engineer: RoleSight = key(Record(RoleSight), "What engineers see.", default_factory=RoleSight)
    admin: RoleSight = key(Record(RoleSight), "What admins see.", default_factory=RoleSight)

    def check(self) -> Iterator[Diagnostic]:
        """Each role sees no more of a stricter class."""
        for role in RoleName:
            yield from self.of(role).problems(role)

    def of(self, role: RoleName) -> RoleSight:
        """The sight of one role."""
        sights: Mapping[RoleName, RoleSight] = {
            RoleName.VIEWER: self.viewer,
            RoleName.OPERATOR: self.operator,
            RoleName.AUDITOR: self.auditor,
            RoleName.ENGINEER: self.engineer,
            RoleName.ADMIN: self.admin,
        }
        return sights[role]


@record("the privacy settings")
class PrivacySettings(Located):
    """Who sees which values, wherever values of rows are shown."""

    roles: RoleSights = key(
        Record(RoleSights),
        "How each role sees public, personal and secret columns: clear, masked or hidden.",
        default_factory=RoleSights,
    )
    influenced_columns: InfluencedColumns = key(
        Choice(InfluencedColumns),
        "The class of columns whose values a selector or join condition on a personal or secret column decides.",
        default=InfluencedColumns.SAME,
    )

    def sights(self, role: str) -> Mapping[str, Sight]:
        """How a role sees each class."""
        name = RoleName(role)
        return self.roles.of(name).of(name)
