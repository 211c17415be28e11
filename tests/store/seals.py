"""The key with which tests seal what they store."""

from clew.events.chain import SealKey
from clew.store.database import Database
from clew.store.ledger import Ledger
from clew.store.owner import Owner

KEY = SealKey(b"the key of the tests, 32 bytes  ")


def the_key() -> SealKey:
    return KEY


def ledger_of(database: Database, environment_id: str = "dev") -> Ledger:
    return Ledger(database, Owner(environment_id=environment_id), the_key)
