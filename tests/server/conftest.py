from tests.server.pages_browser import chromium  # noqa: F401 - one browser for all modules
from tests.server.server_fixtures import *  # noqa: F403
from tests.store.store_fixtures import postgres, postgres_url  # noqa: F401
