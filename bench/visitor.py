"""A browser session without a browser: it speaks to the server as the page in one does, and notes errors."""

from __future__ import annotations

import html
import re
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import ClientConnection, connect

WAIT_S = 120.0  # for a page to be drawn
_TAG = re.compile(r"<[^>]*>")


@dataclass
class Visitor:
    """One person at one page at a time. `errors` are exceptions and error messages that were on a page;
    `headers` are sent with the handshake, as a proxy adds them.
    """

    address: str
    headers: Any = None
    errors: list[str] = field(default_factory=list)
    took: list[tuple[str, float]] = field(default_factory=list)  # what was done, seconds until it was drawn
    _socket: ClientConnection | None = None
    _page: str = ""
    _script: str = ""
    _query: str = ""
    _elements: dict[tuple[int, ...], Any] = field(default_factory=dict)
    _values: dict[str, WidgetState] = field(default_factory=dict)
    _cached: dict[str, ForwardMsg] = field(default_factory=dict)
    _looks: dict[str, tuple[float, float]] = field(default_factory=dict)  # fragment -> seconds between, next

    def open(self, page: str = "", **query: str) -> None:
        """Open a page by its address, in a session of its own."""
        self.close()
        port = self.address.rsplit(":", 1)[1]
        self._socket = connect(
            f"ws://localhost:{port}/_stcore/stream",
            subprotocols=["streamlit"],  # type: ignore[list-item]
            origin=self.address,
            max_size=None,
            legacy=True,
            additional_headers=self.headers,  # type: ignore[arg-type]
        )
        self._page, self._script, self._query = page, "", urlencode(query)
        self._elements, self._values, self._cached, self._looks = {}, {}, {}, {}
        self._rerun(f"open {page or 'compare'}")

    def again(self) -> None:
        """Draw the page again."""
        self._rerun(f"look again at {self._page or 'compare'}")

    def wait(self) -> None:
        """What the page does by itself in a browser: each part that looks again is drawn when it is due."""
        if not self._looks:
            raise LookupError(f"{self._page or 'compare'} waits for nothing")
        fragment = min(self._looks, key=lambda one: self._looks[one][1])
        pause, due = self._looks[fragment]
        time.sleep(max(0.0, due - time.perf_counter()))
        self._looks[fragment] = pause, time.perf_counter() + pause
        self._rerun(f"a look of {self._page or 'compare'}", fragment=fragment)

    def press(self, key: str) -> None:
        """Press the button whose key is, or begins with, `key`; LookupError if there is none."""
        pressed = WidgetState(id=self._id(key), trigger_value=True)
        self._rerun(f"press {key.partition(':')[0]}", pressed)

    def write(self, key: str, text: str) -> None:
        """Put a text into a field; it is sent with what is done next."""
        self._values[key] = WidgetState(id=self._id(key), string_value=text)

    def has(self, key: str) -> bool:
        """Whether the page has a widget of this key."""
        return any(_is(one, key) for one in self._ids())

    def until(self, key: str) -> None:
        """Wait until the page has a widget: a corpus may be being opened. TimeoutError after WAIT_S."""
        began = time.perf_counter()
        while not self.has(key):
            if time.perf_counter() - began > WAIT_S:
                raise TimeoutError(f"{self._page or 'compare'} has no widget {key!r} after {WAIT_S:.0f} s")
            self.wait()

    def ending(self, key: str) -> str:
        """What follows `key:` in the key of the widget whose key begins so; LookupError if there is none."""
        return self._id(key).rpartition(f"-{key}:")[2]

    def asked(self, name: str) -> str:
        """What the page's address says under a name, "" if nothing."""
        return (parse_qs(self._query).get(name) or [""])[0]

    def text(self) -> str:
        """What is on the page as HTML and messages, without marks."""
        found = []
        for element in self._elements.values():
            kind = element.WhichOneof("type")
            body = getattr(getattr(element, kind), "body", "") if kind else ""
            if isinstance(body, str):
                found.append(html.unescape(_TAG.sub(" ", body)).replace("\\", ""))
        return "\n".join(found)

    def close(self) -> None:
        """Close the tab."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ids(self) -> list[str]:
        kinds = ((element, element.WhichOneof("type")) for element in self._elements.values())
        return [id for element, kind in kinds if kind and (id := getattr(getattr(element, kind), "id", ""))]

    def _id(self, key: str) -> str:
        for id in self._ids():
            if _is(id, key):
                return id
        raise LookupError(f"{self._page or 'compare'} has no widget {key!r}")

    def _rerun(self, what: str, *pressed: WidgetState, fragment: str = "") -> None:
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.fragment_id, message.rerun_script.is_auto_rerun = fragment, bool(fragment)
        message.rerun_script.page_script_hash = self._script
        message.rerun_script.page_name = "" if self._script else self._page
        message.rerun_script.widget_states.widgets.extend([*self._values.values(), *pressed])
        began = time.perf_counter()
        if self._socket is None:
            raise ConnectionError("no page is open")
        self._socket.send(message.SerializeToString())
        self._read(began)
        self.took.append((what, time.perf_counter() - began))

    def _read(self, began: float) -> None:
        """Take in messages until the page is drawn."""
        while True:
            left = WAIT_S - (time.perf_counter() - began)
            if self._socket is None or left <= 0:
                raise TimeoutError(f"{self._page or 'compare'} was not drawn within {WAIT_S:.0f} s")
            message = ForwardMsg()
            message.ParseFromString(self._socket.recv(timeout=left))
            if self._take(self._whole(message)):
                return

    def _whole(self, message: ForwardMsg) -> ForwardMsg:
        """The message itself, or the one it refers to, at its place."""
        if message.WhichOneof("type") == "ref_hash":
            whole = ForwardMsg()
            whole.CopyFrom(self._cached[message.ref_hash])
            whole.metadata.CopyFrom(message.metadata)
            return whole
        if message.metadata.cacheable:
            self._cached[message.hash] = message
        return message

    def _take(self, message: ForwardMsg) -> bool:
        """Note what a message says; whether the page is drawn."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._script = message.new_session.page_script_hash
            if not message.metadata.run.fragment_ids:
                self._elements, self._looks = {}, {}  # the whole page is drawn
        elif kind == "auto_rerun":
            pause = message.auto_rerun.interval
            self._looks[message.auto_rerun.fragment_id] = pause, time.perf_counter() + pause
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                self._looks.pop(fragment, None)
        elif kind == "navigation":
            self._script = message.navigation.page_script_hash or self._script
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            self._elements[tuple(message.metadata.delta_path)] = element
            self._note(element)
        elif kind == "script_finished":
            return message.script_finished in (
                ForwardMsg.FINISHED_SUCCESSFULLY,
                ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
            )
        return False

    def _note(self, element: Any) -> None:
        where = f"{self._page or 'compare'}?{self._query}"
        if element.WhichOneof("type") == "exception":
            self.errors.append(f"{where}: {element.exception.type}: {element.exception.message}")
        elif element.WhichOneof("type") == "alert" and element.alert.format == Alert.ERROR:
            self.errors.append(f"{where}: {element.alert.body}")


def _is(id: str, key: str) -> bool:
    """Whether a widget's id ends in a key, or in one that begins with `key:`."""
    found = re.fullmatch(r"\$\$ID-[0-9a-f]+-(.*)", id, re.DOTALL)
    return found is not None and (found[1] == key or found[1].startswith(f"{key}:"))
