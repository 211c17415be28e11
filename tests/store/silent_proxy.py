"""A way to a PostgreSQL server that can fall silent: it takes everything, and passes nothing on."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SilentProxy:
    """Listens on loopback and forwards to the socket of a server, until told to be silent."""

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._speaks = threading.Event()
        self._speaks.set()
        self._closed = threading.Event()
        self.callers_in_silence = threading.Semaphore(0)
        """Released once for each connection that is made while the proxy is silent."""
        self._threads = [threading.Thread(target=self._accept, name="proxy")]
        self._threads[0].start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def fall_silent(self) -> None:
        """From now on connections stay open, and nothing comes through."""
        self._speaks.clear()

    def speak(self) -> None:
        """Forward again, also what came in the meantime."""
        self._speaks.set()

    def close(self) -> None:
        self._closed.set()
        self._speaks.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._speaks.is_set():
                self.callers_in_silence.release()
            thread = threading.Thread(target=self._forward, args=(client,), name="proxy connection")
            self._threads.append(thread)
            thread.start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._target)
            other = {client: server, server: client}
            while not self._closed.is_set():
                readable, _, _ = select.select([client, server], [], [], 0.02)
                self._speaks.wait()
                for source in readable:
                    try:
                        data = source.recv(65_536)
                        if not data:
                            return
                        other[source].sendall(data)
                    except OSError:
                        return


@contextmanager
def silent_proxy(folder: Path) -> Iterator[SilentProxy]:
    """A proxy to the server whose socket is in a folder."""
    proxy = SilentProxy(folder / ".s.PGSQL.5432")
    try:
        yield proxy
    finally:
        proxy.close()
