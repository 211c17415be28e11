"""What a user asks for, looked up in the plan and held to the policy: the requests that a run carries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from clew.captures.policy import CapturePolicy, Limits, stricter
from clew.deferred import dataclass
from clew.definitions import CaptureMode, CaptureWish, Mask
from clew.definitions.settings import PersonalColumns, SinkType
from clew.diagnostics import Diagnostic, Span, UserError, did_you_mean
from clew.diagnostics.codes.captures import CAPTURE_NOT_ALLOWED, NO_MATCHING_COLUMN, UNKNOWN_BREAKPOINT
from clew.events.codec import decode, encode
from clew.plan.datasets import PrivacyName
from clew.plan.names import SEPARATOR
from clew.plan.plan import Breakpoint, Plan
from clew.plan.privacy import LABELS

PARAMETER = "captures"
"""The key in the parameters of a run request."""


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column of the rows that a capture keeps, perhaps masked."""

    name: str
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class OmittedColumn:
    """A column that a capture does not keep, and why."""

    column: str
    reason: str
    """EXCLUDED, PERSONAL, SECRET or LARGE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """What to keep of the rows at a breakpoint."""

    breakpoint: str
    """Its qualified name."""
    seq: int
    mode: CaptureMode
    limits: Limits
    sample_rows: int
    columns: tuple[KeptColumn, ...]
    """In the order of the plan, system columns among them."""
    left_out: tuple[OmittedColumn, ...] = ()
    named: tuple[str, ...] = ()
    """Columns that were requested by name; only privacy rules may leave them out."""
    ttl_days: int
    store: str | None = None
    """A sink of the environment, None for its own storage."""
    shows_personal: bool = False
    """Whether a personal column is kept unmasked. Only roles that may request that can read such a capture."""

    def to_json(self) -> dict[str, object]:
        """For the parameters of a run."""
        document: dict[str, object] = encode(self)
        return document

    @classmethod
    def from_json(cls, document: object) -> "CaptureRequest":
        """The request that `to_json` gave."""
        return decode(cls, document)


def requests_in(parameters: Mapping[str, object]) -> tuple[CaptureRequest, ...]:
    """The captures that a run request carries."""
    listed = parameters.get(PARAMETER)
    return tuple(map(CaptureRequest.from_json, listed)) if isinstance(listed, list | tuple) else ()


EVERY = "*"
SYSTEM = ("_period", LABELS)
"""System columns that every capture keeps beside identity and deletion."""


def requests_of(plan: Plan, wishes: Iterable[CaptureWish], policy: CapturePolicy) -> tuple[CaptureRequest, ...]:
    """The captures of a run. Raises UserError with everything that prevents them."""
    problems = list[Diagnostic]()
    found = list[CaptureRequest]()
    for wish in wishes:
        try:
            found += [_request(plan, wish, point, policy) for point in _points(plan, wish)]
        except UserError as error:
            problems += error.diagnostics
    if problems:
        raise UserError(*problems)
    return tuple(found)


def _points(plan: Plan, wish: CaptureWish) -> Sequence[Breakpoint]:
    """The breakpoints that a name refers to: one, or all."""
    name = wish.breakpoint
    if name == EVERY and plan.breakpoints:
        return plan.breakpoints
    exact = [point for point in plan.breakpoints if point.name == name]
    ending = [point for point in plan.breakpoints if point.name.endswith(f"{SEPARATOR}{name}")]
    found = exact or ending
    if len(found) == 1:
        return found
    names = [point.name for point in plan.breakpoints]
    if found:
        hint = f"several have this label: {', '.join(point.name for point in found)}"
    elif not names:
        hint = f"{plan.name} has no breakpoints; `assign: LABEL` on an operation sets one"
    else:
        near = did_you_mean(name, [*names, *(point.label for point in plan.breakpoints)])
        hint = near or f"there are {', '.join(names[:5])}"
    raise UserError(UNKNOWN_BREAKPOINT.at(_place(wish, "breakpoint"), name=name, project=plan.name, hint=hint))


def _request(plan: Plan, wish: CaptureWish, point: Breakpoint, policy: CapturePolicy) -> CaptureRequest:
    problems = list(_violations(wish, policy))
    mode = wish.mode or policy.usual_mode
    if mode is None:
        problems.append(
            CAPTURE_NOT_ALLOWED.anywhere(problem=f"the environment {policy.environment} allows no captures")
        )
    chosen = _Columns(plan, wish, point, policy)
    problems += chosen.problems
    if problems or mode is None:
        raise UserError(*problems)
    return CaptureRequest(
        breakpoint=point.name,
        seq=point.seq,
        mode=mode,
        limits=_limits(wish, policy),
        sample_rows=wish.sample.rows,
        columns=tuple(chosen.kept),
        left_out=tuple(chosen.left_out),
        named=tuple(chosen.named),
        ttl_days=wish.ttl_days or policy.ttl_days,
        store=wish.store,
        shows_personal=chosen.shows_personal,
    )


def _violations(wish: CaptureWish, policy: CapturePolicy) -> Iterator[Diagnostic]:
    if wish.mode is not None and wish.mode not in policy.modes:
        allowed = ", ".join(policy.modes) or "none"
        problem = f"the environment {policy.environment} does not allow captures in mode {wish.mode}"
        yield CAPTURE_NOT_ALLOWED.at(_place(wish, "mode"), problem=problem, hint=f"it allows {allowed}")
    longest = policy.ttl_days
    if wish.store is not None:
        sink = policy.store(wish.store, SinkType.CAPTURE_STORE)
        if sink is None:
            stores = [name for name, each in policy.sinks.items() if each.type is SinkType.CAPTURE_STORE]
            hint = did_you_mean(wish.store, stores) or f"it has {', '.join(stores) or 'none'}"
            problem = f'the environment {policy.environment} has no capture store "{wish.store}"'
            yield CAPTURE_NOT_ALLOWED.at(_place(wish, "store"), problem=problem, hint=hint)
        else:
            longest = sink.max_ttl_days
    if wish.ttl_days is not None and wish.ttl_days > longest:
        problem = f"captures are kept for {longest} days at most here, not {wish.ttl_days}"
        yield CAPTURE_NOT_ALLOWED.at(_place(wish, "ttl_days"), problem=problem, hint="ask for less")


def _limits(wish: CaptureWish, policy: CapturePolicy) -> Limits:
    """The stricter of what was requested and what the environment allows."""
    most, asked = policy.limits, wish.limits
    return Limits(
        min(asked.max_bytes or most.max_bytes, most.max_bytes),
        min(asked.max_rows or most.max_rows, most.max_rows),
        min(asked.max_columns or most.max_columns, most.max_columns),
    )


class _Columns:
    """Which columns a capture keeps, and how."""

    def __init__(self, plan: Plan, wish: CaptureWish, point: Breakpoint, policy: CapturePolicy) -> None:
        self.kept = list[KeptColumn]()
        self.left_out = list[OmittedColumn]()
        self.named = list[str]()
        self.problems = list[Diagnostic]()
        self.shows_personal = False
        self._policy = policy
        self._wish = wish
        privacy = policy.classes(plan)
        self._masks = policy.masks(plan)
        data = [column.name for column in plan.columns_after(point.seq)]
        self._check_patterns([*data, *SYSTEM], point)
        for name in (*data, *SYSTEM):
            self._decide(name, privacy.get(name), is_system=name in SYSTEM)

    def _check_patterns(self, columns: Sequence[str], point: Breakpoint) -> None:
        for which in ("include_columns", "exclude_columns", "mask"):
            for pattern in getattr(self._wish, which):
                if pattern != EVERY and not any(fnmatchcase(name, pattern) for name in columns):
                    hint = did_you_mean(pattern, columns)
                    self.problems.append(
                        NO_MATCHING_COLUMN.at(
                            _place(self._wish, which), pattern=pattern, breakpoint=point.name, hint=hint
                        )
                    )

    def _decide(self, name: str, privacy: PrivacyName | None, *, is_system: bool) -> None:
        wish = self._wish
        is_named = name in wish.include_columns
        included = is_system or any(fnmatchcase(name, pattern) for pattern in wish.include_columns)
        if not included or any(fnmatchcase(name, pattern) for pattern in wish.exclude_columns):
            self.left_out.append(OmittedColumn(name, "EXCLUDED"))
            return
        if is_named:
            self.named.append(name)
        asked = next((mask for pattern, mask in wish.mask.items() if fnmatchcase(name, pattern)), None)
        if privacy is None:
            self.kept.append(KeptColumn(name, asked))
        elif privacy == "secret":
            self._hide(name, "SECRET", asked, is_named=is_named)
        elif self._policy.shows_personal or (is_named and self._policy.may_ask_for_personal):
            self.shows_personal = self.shows_personal or asked is None
            self.kept.append(KeptColumn(name, asked))
        else:
            self._hide(name, "PERSONAL", asked, is_named=is_named)

    def _hide(self, name: str, reason: str, asked: Mask | None, *, is_named: bool) -> None:
        """Mask a column or leave it out, as the environment has it. To ask for one that is left out is a violation.

        A mask that is asked for counts where it shows less than that of the environment.
        """
        if self._policy.personal is PersonalColumns.MASK:
            self.kept.append(KeptColumn(name, stricter(self._masks[name], asked)))
            return
        self.left_out.append(OmittedColumn(name, reason))
        if is_named:
            roles = ", ".join(self._policy.include_roles)
            hint = f"the roles {roles} may ask for personal columns" if roles and reason == "PERSONAL" else None
            problem = f"{name} is {reason.lower()}, and the environment {self._policy.environment} leaves it out"
            self.problems.append(
                CAPTURE_NOT_ALLOWED.at(_place(self._wish, "include_columns"), problem=problem, hint=hint)
            )


def _place(wish: CaptureWish, key: str) -> Span | None:
    """The place in a file; a command line has none that helps."""
    span = wish.place(key)
    return None if span.file.startswith("<") else span
