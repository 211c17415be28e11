"""Airflow's way to a Clew server: a connection with its address and a token, and a trigger that waits for a run."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.definitions.connection import Connection
from airflow.triggers.base import BaseTrigger, TriggerEvent

from clew.api.remote import RemoteServer
from clew.diagnostics import ClewError, TransientFailure
from clew.integrations.run_documents import error_text, status_of
from clew.runs.signals import SignalType

_KILLED = "the task in Airflow was killed"


class ClewHook(BaseHook):
    """A server that a connection of type `clew` describes: its address as host, a token as password."""

    conn_name_attr = "clew_conn_id"
    default_conn_name = "clew_default"
    conn_type = "clew"
    hook_name = "Clew"

    def __init__(self, clew_conn_id: str = default_conn_name, **settings: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(**settings)
        self._connection = clew_conn_id

    def get_conn(self) -> RemoteServer:
        """The HTTP API of the server."""
        return server_of(self.get_connection(self._connection))

    def test_connection(self) -> tuple[bool, str]:
        """Whether the server answers to the token."""
        try:
            self.get_conn().projects()
        except ClewError as error:
            return False, error_text(error)
        return True, "the server answers"

    @staticmethod
    def get_ui_field_behaviour() -> dict[str, Any]:
        """What Airflow's form for connections shows."""
        return {
            "hidden_fields": ["login", "extra"],
            "relabeling": {"host": "Address", "schema": "http or https", "password": "Token"},
            "placeholders": {"host": "https://clew.example.com", "password": "clew token create airflow"},
        }


def server_of(connection: Connection) -> RemoteServer:
    """The server of a connection, whether its host is an address or a name beside a port."""
    host = connection.host or ""
    url = host if "://" in host else f"{connection.schema or 'https'}://{host}"
    port = f":{connection.port}" if connection.port else ""
    return RemoteServer(f"{url.rstrip('/')}{port}", connection.password or "")


def cancel_run(server: RemoteServer, run_id: str) -> None:
    """Ask a run to end, because its task was killed."""
    server.signal(run_id, SignalType.CANCEL, _KILLED)


class ClewRunTrigger(BaseTrigger):
    """Waits for the end of a run without occupying a worker of Airflow."""

    def __init__(self, clew_conn_id: str, run_id: str, poll_interval: float, patience: float) -> None:
        super().__init__()
        self.clew_conn_id = clew_conn_id
        self.run_id = run_id
        self.poll_interval = poll_interval
        self.patience = patience
        """For how many seconds the server may be out of reach."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What Airflow keeps of it: no token."""
        kept = ("clew_conn_id", "run_id", "poll_interval", "patience")
        return f"{__name__}.{type(self).__name__}", {name: getattr(self, name) for name in kept}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ask for the state of the run until it has ended. The event has `problem` if that cannot be found out."""
        server = await self._server()
        last_heard = time.monotonic()
        while True:
            try:
                run = await asyncio.to_thread(server.run, self.run_id)
            except TransientFailure as error:
                if time.monotonic() - last_heard > self.patience:
                    yield TriggerEvent({"run_id": self.run_id, "problem": error_text(error)})
                    return
            except ClewError as error:
                yield TriggerEvent({"run_id": self.run_id, "problem": error_text(error)})
                return
            else:
                last_heard = time.monotonic()
                if status_of(run).is_terminal:
                    yield TriggerEvent({"run_id": self.run_id, "status": run["status"]})
                    return
            await asyncio.sleep(self.poll_interval)

    async def on_kill(self) -> None:
        """Cancel the run: someone has ended or cleared the task."""
        await asyncio.to_thread(cancel_run, await self._server(), self.run_id)

    async def _server(self) -> RemoteServer:
        return server_of(await ClewHook.aget_connection(self.clew_conn_id))
