"""What the recipes of deploy/ need when they are tried: a database."""

from tests.store.store_fixtures import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]
