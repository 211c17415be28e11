"""Alerts about files that are not as they were written: events of the run, which go to its event buses."""

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from clew.deferred import dataclass
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.trace import DAMAGED_TRACE, FORGED_HISTORY
from clew.runs.alerts import Alert, RaisedAlert, raise_alert
from clew.runs.clock import utc_now
from clew.runs.stores import EventWriter
from clew.storage.checked_files import OnDamage

_log = logging.getLogger(__name__)
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class DamageAlerts:
    """Raises an alert once for each file and what is wrong with it, however often someone asks."""

    writer: Callable[[], EventWriter]
    """Gives what appends to histories; asked only once something is wrong."""

    @contextmanager
    def raised_for(self, run_id: str) -> Iterator[OnDamage]:
        """Raise alerts about a run: for what is found while its trace is opened, and later while it is read."""
        report = partial(self.report, run_id)
        try:
            yield report
        except UserError as error:
            report(error)
            raise

    def report(self, run_id: str, error: UserError) -> None:
        """Raise an alert, if the error is about damage. The question is refused whether this succeeds or not."""
        for diagnostic in error.diagnostics:
            if diagnostic.code not in {DAMAGED_TRACE.name, FORGED_HISTORY.name}:
                continue
            scope = hashlib.sha256(diagnostic.message.encode()).hexdigest()[:_DIGITS]
            file = str(diagnostic.params.get("file", ""))
            alert = RaisedAlert(
                alert=Alert.FILE_DAMAGED, message=diagnostic.message, scope=scope, details={"file": file}
            )
            try:
                raise_alert(self.writer(), run_id, alert, utc_now)
            except ClewError as failure:
                _log.warning("no alert was raised about %s: %s", file, failure)
