"""What a login needs, and who is let in at the door."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain import settings as settings_module
from core.domain import sign_in
from core.domain.errors import BadInput
from core.engine import doctor
from ui.app import visitors
from ui.app.visitors import SEAL, SEALED, Door

pytestmark = pytest.mark.trust
WHOLE = {
    "oidc_url": "https://id.example/.well-known/openid-configuration",
    "oidc_client_id": "us",
    "oidc_client_secret": "secret",
    "cookie_secret": "c" * 32,
    "public_url": "https://scope.example",
}
PROXY = {"proxy_header": "X-Forwarded-Email", "proxy_addresses": "10.0.0.0/24 ::1"}
EMPTY = {sign_in.FORWARDED: ""}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path))


@pytest.mark.parametrize("given", [{}, WHOLE, PROXY, {**WHOLE, "public_url": "http://localhost:8501"}])
def test_a_whole_login_or_none_is_fine(given):
    sign_in.check(settings_module.load(**given), EMPTY)


@pytest.mark.parametrize(
    ("given", "environment", "told"),
    [
        ({**WHOLE, **PROXY}, EMPTY, "people sign in by one"),
        *[
            ({**WHOLE, name: None if "secret" in name else ""}, EMPTY, f"setting {name}: a login by oidc_url")
            for name in ("oidc_client_id", "oidc_client_secret", "cookie_secret", "public_url")
        ],
        ({**WHOLE, "cookie_secret": "short"}, EMPTY, "give 32 random characters"),
        ({**WHOLE, "public_url": "http://scope.example"}, EMPTY, "setting public_url: give an https://"),
        ({**WHOLE, "public_url": "https://scope.example/x"}, EMPTY, "without a path"),
        ({**WHOLE, "oidc_url": "http://id.example/x"}, EMPTY, "setting oidc_url: give an https:// address"),
        ({"proxy_header": "X User"}, EMPTY, "is no name of a header"),
        ({**PROXY, "proxy_addresses": "10.0.0.1/24"}, EMPTY, "has host bits set"),
        ({**PROXY, "proxy_addresses": " "}, EMPTY, "name the address of the proxy"),
        (PROXY, {}, "must be set and empty"),
        (PROXY, {sign_in.FORWARDED: "*"}, "must be set and empty"),
    ],
)
def test_half_a_login_is_one_error_without_a_secret(given, environment, told):
    with pytest.raises(BadInput, match=told) as error:
        sign_in.check(settings_module.load(**given), environment)
    assert "short" not in str(error.value)


def test_streamlit_gets_what_its_login_wants():
    assert sign_in.streamlit_secrets(settings_module.load()) == {}
    (found,) = sign_in.streamlit_secrets(settings_module.load(**WHOLE)).values()
    assert found["redirect_uri"] == "https://scope.example/oauth2callback"
    assert {*found} == {"redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url"}


@pytest.mark.parametrize(
    ("peer", "is_it"),
    [
        *((peer, True) for peer in ("10.0.0.7", "::ffff:10.0.0.7", "::1")),
        *((peer, False) for peer in ("10.0.1.7", "", None, "proxy", "10.0.0.7:80", "127.0.0.1")),
    ],
)
def test_a_proxy_is_known_by_its_address(peer, is_it):
    assert sign_in.is_trusted(peer, sign_in.trusted(settings_module.load(**PROXY))) is is_it


def through(monkeypatch, given, scope):
    """What the app behind the door gets, or the status and the words that are answered."""
    monkeypatch.setattr(settings_module, "current", lambda: settings_module.load(**given))
    reached, sent = [], []

    async def app(scope, receive, send):
        reached.append(scope)

    async def send(message):
        sent.append(message)

    whole = {
        "type": "http",
        "path": "/",
        "headers": [],
        "server": ("127.0.0.1", 1),
        "client": ("127.0.0.1", 2),
    }
    asyncio.run(Door(app)({**whole, **scope}, None, send))
    return (reached[0], None) if reached else (None, sent)


@pytest.mark.parametrize(
    ("server", "let_in"),
    [
        *(((host, 80), True) for host in ("127.0.0.1", "127.0.0.5", "::1", "localhost")),
        *(((host, 80), False) for host in ("192.0.2.1", "0.0.0.0", "::", "scope.example")),
        (("/run/x.sock", None), True),
        (None, True),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_without_a_login_nobody_comes_from_elsewhere(server, let_in, kind, monkeypatch):
    scope, sent = through(monkeypatch, {}, {"server": server, "type": kind})
    assert (scope is not None) is let_in
    if not let_in and kind == "http":
        assert sent[0]["status"] == 403
        assert b"without a login" in sent[1]["body"]
    elif not let_in:
        assert sent == [{"type": "websocket.close", "code": 1008}]


def test_only_the_proxy_comes_in_and_its_header_is_sealed(monkeypatch):
    headers = [
        (b"host", b"x"),
        (b"X-Forwarded-Email", b" ann@example.org "),
        (SEALED.encode(), b"forged"),
        (b"X-RouteScope-Account", b"forged"),
    ]
    scope, _ = through(monkeypatch, PROXY, {"client": ("10.0.0.7", 1), "headers": headers})
    assert scope["headers"] == [(b"host", b"x"), (SEALED.encode(), f"{SEAL} ann@example.org".encode())]
    for client in (("10.9.9.9", 1), None):
        assert through(monkeypatch, PROXY, {"client": client, "headers": headers})[1][0]["status"] == 403
        healthy, _ = through(
            monkeypatch, PROXY, {"client": client, "headers": headers, "path": visitors.HEALTH}
        )
        assert healthy["headers"][1][0] == SEALED.encode()


NAMES = [b"x-forwarded-email", b"X-Forwarded-Email", SEALED.encode(), b"a"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.binary(max_size=8)), max_size=6))
def test_a_seal_stands_before_one_given_account_alone(headers):
    with pytest.MonkeyPatch.context() as patch:
        scope, _ = through(patch, PROXY, {"client": ("10.0.0.7", 1), "headers": headers})
    sealed = [value for name, value in scope["headers"] if name.lower() == SEALED.encode()]
    given_ = [value.strip() for name, value in headers if name.lower() == b"x-forwarded-email"]
    assert sealed == ([f"{SEAL} ".encode() + given_[0]] if len(given_) == 1 and given_[0] else [])
    assert not [name for name, _ in scope["headers"] if name.lower() == b"x-forwarded-email"]


@pytest.mark.parametrize(
    ("given", "roles", "state", "told"),
    [
        ({}, {}, "ok", "none: the dashboard listens on this machine alone"),
        (WHOLE, {"ann@example.org": "owner"}, "ok", "oidc, 1 roles"),
        (WHOLE, {"@example.org": "viewer"}, "warning", "nobody is an owner"),
        ({**WHOLE, "public_url": ""}, {}, "failed", "setting public_url"),
    ],
)
def test_doctor_tells_of_it(given, roles, state, told):
    (found,) = doctor._sign_in(settings_module.load(**given, team={"roles": roles}))
    assert found.state == state
    assert told in found.detail
