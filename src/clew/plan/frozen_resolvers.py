"""The resolvers that an activated version keeps: the files that said where its data lies when it was activated.

They are part of the plan, so that they count in its digest and every run of the version finds its data by the same
rules, whatever happens to the files later. Plans of drafts and of older versions keep none.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from clew.deferred import dataclass
from clew.definitions import Resolver, WorkspaceDefinitions
from clew.definitions.kinds import FILE_KINDS
from clew.definitions.nodes import SourceText
from clew.definitions.yaml_nodes import read_yaml
from clew.plan.json_form import digest_of
from clew.plan.plan import FrozenResolver, Plan


def frozen(plan: Plan, workspace: WorkspaceDefinitions, source_of: Callable[[str], str | None]) -> Plan:
    """The plan with the resolvers of all datasets that it reads, as their files are now."""
    names = dict.fromkeys(use.resolver_id for use in plan.datasets_read if use.resolver_id is not None)
    found = [workspace.resolver(name) for name in names]
    kept = tuple(
        FrozenResolver(each.id, each.file, text)
        for each in sorted((each for each in found if each is not None), key=lambda resolver: resolver.id)
        if (text := source_of(each.file)) is not None
    )
    if not kept:
        return plan
    with_them = replace(plan, extensions=replace(plan.extensions, resolvers=kept))
    return replace(with_them, digest=digest_of(with_them))


@dataclass(frozen=True, slots=True)
class ResolverOfRun:
    """A resolver that a run uses."""

    resolver: Resolver
    is_frozen: bool
    """Whether it is the one of the version, and not that of the workspace."""


def resolver_of_run(plan: Plan, workspace: WorkspaceDefinitions, name: str) -> ResolverOfRun | None:
    """A resolver by id or name: as the version keeps it, or else as the workspace has it now; None if none does."""
    now = workspace.resolver(name)
    wanted = {name} if now is None else {name, now.id}
    for each in plan.extensions.resolvers:
        if each.id in wanted:
            return ResolverOfRun(_read(each), is_frozen=True)
    return None if now is None else ResolverOfRun(now, is_frozen=False)


@lru_cache(maxsize=64)
def _read(kept: FrozenResolver) -> Resolver:
    node = read_yaml(SourceText(kept.file, kept.text)).root
    assert node is not None  # noqa: S101 - it was read from this text before
    read = FILE_KINDS["resolver"].shape.read(node)
    assert isinstance(read, Resolver)  # noqa: S101 - a shape gives what it was made for
    return read
