"""The privacy policy: the one place that decides what a role sees of which class of columns.

Everything that shows values of rows asks it: commands, Python, pages, the HTTP API, exports. `SeenTrace` and `Answers`
apply it to what readers found, so that none of them reaches a caller unfiltered.
"""

import hashlib
from collections.abc import Callable, Mapping

from clew.auth.roles import AccessRole, Permission
from clew.deferred import dataclass
from clew.definitions import Environment, Mask
from clew.definitions.privacy import InfluencedColumns, Sight
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import FORBIDDEN
from clew.plan.datasets import PrivacyName
from clew.plan.privacy import Marks

PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class PrivacyPolicy:
    """What one role sees in one environment."""

    environment: str
    role: AccessRole
    sights: Mapping[str, Sight]
    mask: Mask
    influenced: InfluencedColumns
    marks: Marks
    """Classes that the workspace gives to columns of datasets now; runs may be older than these."""
    salt: Callable[[], str]
    """What hashes of masked values are made with, as in captures."""

    @classmethod
    def of(
        cls, name: str, environment: Environment, role: AccessRole, *, marks: Marks, salt: Callable[[], str]
    ) -> "PrivacyPolicy":
        """The policy that clew.yaml gives to a role."""
        return cls(
            environment=name,
            role=role,
            sights=environment.privacy.sights(role),
            mask=environment.captures.mask,
            influenced=environment.privacy.influenced_columns,
            marks=marks,
            salt=salt,
        )

    def sight(self, privacy: PrivacyName | None) -> Sight:
        """How the role sees columns of a class; None is public."""
        return self.sights[privacy or PUBLIC]

    def sees_clearly(self, privacy: PrivacyName | None) -> bool:
        """Whether the role sees columns of a class as they are."""
        return self.sight(privacy) is Sight.CLEAR

    def require_rows(self) -> None:
        """Raise UserError Forbidden if the role may not see rows at all."""
        if Permission.READ_ROWS not in self.role.permissions:
            raise UserError(FORBIDDEN.anywhere(problem=f"the role {self.role} may not {Permission.READ_ROWS}"))

    def require_logs(self) -> None:
        """Raise UserError Forbidden for roles that do not operate runs."""
        self.require_rows()
        if Permission.SEND_SIGNALS not in self.role.permissions:
            raise UserError(FORBIDDEN.anywhere(problem=f"the role {self.role} may not read the logs of drivers"))

    @property
    def fingerprint(self) -> str:
        """Two policies with the same one show the same values: answers for one may be kept for the other."""
        told = (
            self.environment,
            sorted(self.sights.items()),
            str(self.mask),
            self.influenced,
            sorted(self.marks.items()),
        )
        return hashlib.sha256(repr(told).encode()).hexdigest()[:32]
