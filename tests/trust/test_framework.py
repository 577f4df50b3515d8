"""Uploads, downloads and figures of the framework are for whoever may have them, and have an end."""

from __future__ import annotations

import re
import uuid
from contextlib import closing, contextmanager

import httpx2
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette import starlette_app
from websockets.exceptions import InvalidStatus

from bench.visitor import Visitor
from core.store import Store
from scripts import serving
from tests.runs import make_run
from tests.until import until
from ui.app import framework

pytestmark = [pytest.mark.trust, pytest.mark.process]
ANN, BOB, CAT, NOBODY = "ann@example.org", "bob@example.org", "cat@elsewhere.example", ""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server behind a proxy, with one shared run, whose limits are small."""
    home = tmp_path_factory.mktemp("team")
    (home / "routescope.toml").write_text(f'[team.roles]\n"{ANN}" = "owner"\n"{BOB}" = "owner"\n')
    with closing(Store(home / "routescope.sqlite")) as store:
        store.save(make_run(mishaps=False, run_id="good"))
        assert store.flush()
    environment = {
        "ROUTESCOPE_HOME": str(home),
        "ROUTESCOPE_LLM_MODE": "replay",
        "ROUTESCOPE_PROXY_HEADER": "X-User",
        "ROUTESCOPE_PROXY_ADDRESSES": "127.0.0.1",
        "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": "1",  # seconds a tab may be away
    }
    small = (
        "framework.SESSION_BYTES, framework.ALL_BYTES, framework.SWEEP_S = 3 << 20, 5 << 20, 0.2\n"
        "framework.UNKNOWN = 3\n"
        "app = st.App("
    )
    whole = (serving.PROJECT / "app.py").read_text(encoding="utf-8")
    app = home / "app.py"
    app.write_text(
        whole.replace(
            "import streamlit as st",
            f"sys.path.insert(0, {str(serving.PROJECT)!r})\n"
            "import streamlit as st\nfrom ui.app import framework",
        )
        .replace("app = st.App(", small)
        .replace('"pages/frame.py"', repr(str(serving.PROJECT / "pages" / "frame.py")))
    )
    with serving.served(home / "server.log", environment, app=app) as (there, _):
        yield there


@contextmanager
def visiting(server, who):
    person = Visitor(server, headers={"X-User": who} if who else {})
    person.open("sessions")
    try:
        yield person
    finally:
        person.close()


def asked(person, message, kind):
    """What the server sends of a kind after `message`."""
    person._socket.send(message.SerializeToString())
    while True:
        told = ForwardMsg()
        told.ParseFromString(person._socket.recv(timeout=60))
        if told.WhichOneof("type") == kind:
            return getattr(told, kind)


def places(person, count=1):
    """Addresses to which the page of a person may upload."""
    message = BackMsg()
    message.file_urls_request.file_names.extend(["a.txt"] * count)
    return [one.upload_url for one in asked(person, message, "file_urls_response").file_urls]


@contextmanager
def http(server, who=""):
    headers = {"X-User": who} if who else {}
    with httpx2.Client(base_url=server, headers=headers, trust_env=False) as client:
        client.get("/_stcore/health")  # sets the cookie against forged requests
        client.headers["X-Xsrftoken"] = client.cookies.get("_streamlit_xsrf") or ""
        yield client


def put(server, who, place, size=1000):
    with http(server, who) as client:
        return client.put(place, files={"file": ("a.txt", b"a" * size)}).status_code


def test_every_route_of_the_framework_is_listed():
    """A route that a later version adds is closed until somebody decides who may have it."""

    class Some:
        def __getattr__(self, name):
            return Some()

    routes = starlette_app.create_streamlit_routes(Some())
    paths = {re.sub(r"\{.*", "", one.path) for one in routes if getattr(one, "path", "")}
    own = {path for path in paths if path.startswith(framework.CLOSED)}
    closed = {"/_stcore/agent/interact", "/_stcore/agent/openapi.json", "/_stcore/agent/mcp"}
    assert own - closed == set(framework.NEEDED)
    assert paths - own == {"/auth/login", "/auth/logout", "/oauth2callback"}


@pytest.mark.parametrize("who", [NOBODY, CAT])
def test_without_a_role_there_are_no_uploads_downloads_and_figures(server, who):
    with visiting(server, who) as person:
        place = places(person)[0]
        assert put(server, who, place) == 403
    with http(server, who) as client:
        for path in (
            "/_stcore/metrics",
            f"/media/{'0' * 32}.txt",
            "/component/x",
            "/_stcore/bidi-components/x",
        ):
            assert client.get(path).status_code == 403
        for path in ("/_stcore/agent/mcp", "/_stcore/script-health-check", "/_stcore/", "/_stcore/new/thing"):
            assert client.get(path).status_code == 404
        for path in ("/", "/sessions", "/_stcore/health", "/_stcore/host-config"):
            assert client.get(path).status_code == 200
    with http(server, ANN) as client:
        assert client.get("/_stcore/metrics").status_code == 200


def test_another_persons_download_is_not_given(server):
    with visiting(server, ANN) as ann:
        file = next(
            one.download_button.deferred_file_id
            for one in ann._elements.values()
            if one.WhichOneof("type") == "download_button" and one.download_button.deferred_file_id
        )
        message = BackMsg()
        message.backend_operation_request.request_id = "1"
        message.backend_operation_request.session_id = places(ann)[0].split("/")[-2]
        message.backend_operation_request.deferred_file.file_id = file
        told = asked(ann, message, "backend_operation_response")
        address = re.search(r"/media/[0-9a-f]{32}\.\w+", str(told))[0]
        with http(server, ANN) as client:
            assert client.get(address).content.startswith(b"PK")
        for who in (BOB, CAT, NOBODY):
            with http(server, who) as client:
                assert client.get(address).status_code == 403
        with visiting(server, BOB) as bob:  # who has a page open, but was not sent that address
            assert not bob.errors
            with http(server, BOB) as client:
                assert client.get(address).status_code == 403


def test_uploads_go_where_the_page_said_and_have_an_end(server):
    with visiting(server, ANN) as ann, visiting(server, BOB) as bob:
        first, second, third, fourth = places(ann, 4)
        session = first.split("/")[-2]
        assert put(server, ANN, first) == 204
        assert put(server, BOB, second) == 403  # another person's tab
        assert put(server, ANN, f"/_stcore/upload_file/{session}/{uuid.uuid4()}") == 403
        assert put(server, ANN, second, 2 << 20) == 204
        assert put(server, ANN, third, 2 << 20) == 413
        with http(server, ANN) as client:  # without a length
            body = client.build_request("PUT", third, files={"file": ("a.txt", b"a" * (2 << 20))})
            kind = {"content-type": body.headers["content-type"]}
            assert client.put(third, content=iter([body.read()]), headers=kind).status_code == 413
        assert put(server, ANN, fourth) == 204
        his = places(bob, 2)
        assert put(server, BOB, his[0], 2 << 20) == 204
        assert put(server, BOB, his[1], 2 << 20) == 413  # in all


def test_memory_of_uploads_is_freed_with_the_session(server):
    def uploads(person, who):
        return put(server, who, places(person)[0], 2 << 20) == 204

    with visiting(server, ANN) as ann, visiting(server, BOB) as bob, visiting(server, ANN) as second:
        until(lambda: uploads(ann, ANN))  # those of earlier tests are gone
        until(lambda: uploads(bob, BOB))
        assert not uploads(second, ANN)  # 5 MB are all there is
        ann.close()
        until(lambda: uploads(second, ANN))
        assert not uploads(second, ANN)


def test_sockets_of_strangers_have_an_end_and_keep_no_one_out(server):
    strangers = [Visitor(server) for _ in range(3)]
    try:
        for one in strangers:
            one.open()
        with pytest.raises(InvalidStatus):
            Visitor(server).open()
        with visiting(server, ANN) as ann:
            assert ann.has("run") or not ann.errors
    finally:
        for one in strangers:
            one.close()
