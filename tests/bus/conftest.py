from tests.store.store_fixtures import *  # noqa: F403
