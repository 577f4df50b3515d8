"""A server on loopback that answers with exactly the bytes a test wants, and remembers what it was sent."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


def http(
    body: bytes | str, *, status: str = "200 OK", kind: str = "application/json", more: str = ""
) -> bytes:
    """One whole HTTP response."""
    data = body.encode() if isinstance(body, str) else body
    # Each connection serves one request: a client must not come back on it while it is being closed.
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
    head += f"Connection: close\r\n{more}\r\n"
    return head.encode() + data


@dataclass
class Loopback:
    """Its address and every request it was sent, whole."""

    url: str
    requests: list[bytes] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)


Reply = bytes | Callable[[Loopback, socket.socket, bytes], None]


def hold(server: Loopback, talk: socket.socket, _: bytes) -> None:
    """A reply that never comes; tells when the caller hangs up."""
    talk.recv(1)
    server.hung_up.set()


def drip(server: Loopback, talk: socket.socket, _: bytes) -> None:
    """A reply of one byte every 20 ms, for ever."""
    talk.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
    while True:
        talk.sendall(b" ")
        time.sleep(0.02)


@contextmanager
def loopback(reply: Reply) -> Iterator[Loopback]:
    """Serve `reply` to every request, one request a connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Loopback(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def serve(talk: socket.socket) -> None:
        with talk:
            sent = _request(talk)
            if not sent:
                return
            server.requests.append(sent)
            try:
                if isinstance(reply, bytes):
                    talk.sendall(reply)
                else:
                    reply(server, talk, sent)
            except OSError:
                server.hung_up.set()

    def accept() -> None:
        while True:
            try:
                talk, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(talk,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _request(talk: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        block = talk.recv(65536)
        if not block:
            return data
        data += block
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ),
        0,
    )
    while len(body) < length:
        body += talk.recv(65536)
    return head + b"\r\n\r\n" + body
