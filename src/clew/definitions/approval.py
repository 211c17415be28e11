"""Whether runs wait for an approval before they start, and who may give it."""

from enum import StrEnum

from clew.definitions.shapes import FLAG, Choice, ListOf, Located, key, record


class Approval(StrEnum):
    """Whether a run needs approval before it starts."""

    REQUIRED = "required"
    NONE = "none"


class Approver(StrEnum):
    """Who may approve a run."""

    ANYONE = "anyone"
    """Everyone with the role, the requester among them."""
    ANOTHER_PERSON = "another_person"
    """Everyone with the role but the person who requested the run."""


class ApproverRole(StrEnum):
    """The roles that can be allowed to approve."""

    OPERATOR = "operator"
    ENGINEER = "engineer"
    ADMIN = "admin"


@record("an approval policy")
class ApprovalSettings(Located):
    """Whether runs wait for an approval, and whose."""

    required: bool = key(FLAG, "Whether runs wait for an approval.", default=True)
    by: Approver = key(
        Choice(Approver),
        "`another_person`: who requested a run cannot approve it.",
        default=Approver.ANOTHER_PERSON,
    )
    roles: tuple[ApproverRole, ...] = key(
        ListOf(Choice(ApproverRole), "roles", at_least=1), "The roles that may approve.", default=(ApproverRole.ADMIN,)
    )
