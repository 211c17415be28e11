"""A table of tokens."""

from collections.abc import Iterable
from datetime import datetime

from rich.console import RenderableType

from clew.cli.moments import local_minute
from clew.cli.views.page import headed, plain
from clew.runs.access.tokens import ApiToken


def token_table(tokens: Iterable[ApiToken], now: datetime) -> RenderableType:
    """Tokens, one in a line."""
    rows = [
        [
            plain(token.token_id),
            plain(token.name),
            plain(token.role.value),
            plain(token.tenant_id),
            plain(local_minute(token.created_at)),
            plain(_state(token, now)),
        ]
        for token in tokens
    ]
    return headed(["token", "name", "role", "tenant", "made", "state"], rows)


def _state(token: ApiToken, now: datetime) -> str:
    if token.revoked_at is not None:
        return f"revoked {local_minute(token.revoked_at)}"
    word = "good until" if token.is_valid(now) else "expired"
    return f"{word} {local_minute(token.expires_at)}"
