"""A team's server: signing in with a real provider, what roles may do, and a proxy that alone is believed."""

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing, contextmanager

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from bench.visitor import Visitor
from core.store import Store
from scripts import serving
from tests.browser.acting import settle
from tests.browser.conftest import ROOT
from tests.browser.test_accessibility import AXE, faults
from tests.identity_provider import CLIENT, SECRET, provider

pytestmark = [pytest.mark.browser, pytest.mark.enable_socket, pytest.mark.trust]
ANN, BOB, CAT = "ann@example.org", "bob@example.org", "cat@elsewhere.example"
ROLES = f'[team.roles]\n"{ANN}" = "owner"\n"@example.org" = "viewer"\n'
QUESTION = "How do I send an item back?"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def team_home(address, home, tmp_path_factory):
    """A home with the corpus of the other tests, roles, and no runs."""
    made = tmp_path_factory.mktemp("team")
    (made / "indexes").symlink_to(home / "indexes")
    (made / "routescope.toml").write_text(ROLES)
    return made


@pytest.fixture(scope="module")
def identity():
    with provider() as found:
        yield found


@pytest.fixture(scope="module")
def server(team_home, identity):
    """The dashboard with a login."""
    port = free_port()
    environment = {
        "ROUTESCOPE_HOME": str(team_home),
        "ROUTESCOPE_LLM_MODE": "replay",
        "ROUTESCOPE_OIDC_URL": f"{identity.address}/.well-known/openid-configuration",
        "ROUTESCOPE_OIDC_CLIENT_ID": CLIENT,
        "ROUTESCOPE_OIDC_CLIENT_SECRET": SECRET,
        "ROUTESCOPE_COOKIE_SECRET": "c" * 40,
        "ROUTESCOPE_PUBLIC_URL": f"http://localhost:{port}",
        "no_proxy": "localhost,127.0.0.1",
    }
    with serving.served(team_home / "server.log", environment, port) as (there, _):
        yield there


@pytest.fixture
def visit(browser, server):
    contexts = []

    def opened(path="/"):
        context = browser.new_context(viewport={"width": 1440, "height": 1000})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(45_000)
        page.goto(server + path)
        return page

    yield opened
    for context in contexts:
        context.close()


def sign_in(page, email, *, verified=True):
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Email").fill(email)
    page.get_by_label("verified").set_checked(verified)
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector("[data-testid=stApp]")


def ask(page, address):
    """Ask on Compare, with routes that call no model; the id of the run."""
    page.goto(f"{address}/?q={QUESTION}&corpus=handbook&routes=bm25,dense")
    page.wait_for_selector("textarea")
    settle(page)
    page.get_by_role("button", name="Run", exact=False).first.click()
    page.wait_for_selector("[data-testid=stTabs]")
    settle(page)
    return page.url.partition("run=")[2].partition("&")[0]


def test_who_did_not_sign_in_sees_nothing_but_the_way_to(visit):
    page = visit("/sessions")
    page.get_by_role("button", name="Sign in").wait_for()
    assert page.locator("[data-testid=stSidebarNav]").count() == 0
    assert page.locator("textarea").count() == 0


def test_sign_in_ask_share_and_sign_out(visit, server, team_home, identity):
    ann, bob = visit(), visit()
    sign_in(ann, ANN)
    ann.wait_for_selector("textarea")
    assert ANN in ann.locator(".rs-account").inner_text()
    assert "owner" in ann.locator(".rs-account").inner_text()
    hers = ask(ann, server)
    assert hers

    sign_in(bob, BOB.upper())
    bob.wait_for_selector("textarea")
    assert f"{BOB} viewer" in bob.locator(".rs-account").inner_text()
    bob.goto(f"{server}/?run={hers}")
    bob.get_by_text("there is no run").wait_for()
    with closing(Store(team_home / "routescope.sqlite")) as store:
        row = store.session(hers)
        assert (row.maker, row.private) == (ANN, True)
        store.share(hers)
    bob.goto(f"{server}/?run={hers}")
    bob.wait_for_selector("[data-testid=stTabs]")
    bob.goto(f"{server}/settings?tab=Settings")
    bob.get_by_text("needs the role owner").first.wait_for()

    other = ann.context.new_page()
    other.goto(server)
    other.wait_for_selector(".rs-account")
    ann.get_by_role("button", name="Sign out").click()
    ann.get_by_role("button", name="Sign in").wait_for()
    assert identity.signed_out[-1] == f"{server}/oauth2callback"
    other.get_by_role("button", name="Run", exact=False).first.click()  # its session was begun before
    other.get_by_role("button", name="Sign in").wait_for()
    ann.goto(f"{server}/?run={hers}")
    ann.get_by_role("button", name="Sign in").wait_for()


def test_an_address_that_nobody_verified_is_no_account(visit):
    page = visit()
    sign_in(page, ANN, verified=False)
    page.get_by_text("does not say that it verified").wait_for()
    assert page.locator("textarea").count() == 0


def test_who_has_no_role_is_told_so(visit):
    page = visit()
    sign_in(page, CAT)
    page.get_by_text(f"You are signed in as {CAT}").wait_for()
    assert page.locator("textarea").count() == 0


def test_axe_finds_nothing_serious_where_people_sign_in_and_on_what_is_disabled(visit, server):
    page = visit()
    found = []
    for path in ("/", "/settings?tab=People", "/label", "/corpus?tab=Add"):
        page.goto(server + path)
        page.locator("[data-testid=stSidebarNav], button:has-text('Sign in')").first.wait_for()
        settle(page)
        page.evaluate(AXE)
        found += [f"{path}: {fault}" for fault in faults(page)]
        page.emulate_media(color_scheme="dark")
        settle(page)
        found += [f"{path}, dark: {fault}" for fault in faults(page, rule="color-contrast")]
        page.emulate_media(color_scheme="light")
        if path == "/":
            sign_in(page, BOB)
            page.wait_for_selector("textarea")
    assert found == []


def test_a_forged_cookie_is_nobody(server):
    person = Visitor(server, headers={"Cookie": f'_streamlit_user="{json.dumps({"email": ANN})}"'})
    person.open()
    assert person.has("sign_in")
    assert not person.has("run")
    person.close()


# A proxy


@contextmanager
def behind_a_proxy(home, addresses="127.0.0.1"):
    environment = {
        "ROUTESCOPE_HOME": str(home),
        "ROUTESCOPE_LLM_MODE": "replay",
        "ROUTESCOPE_PROXY_HEADER": "X-Forwarded-Email",
        "ROUTESCOPE_PROXY_ADDRESSES": addresses,
    }
    with serving.served(home / "proxy.log", environment) as found:
        yield found[0]


def test_the_proxys_header_names_the_account(team_home):
    with behind_a_proxy(team_home) as there:
        bob = Visitor(there, headers={"X-Forwarded-Email": BOB})
        bob.open()
        assert f"{BOB} viewer" in " ".join(bob.text().split())
        bob.close()
        for headers in (
            {},
            {"X-RouteScope-Account": f"{'0' * 64} {ANN}"},
            [("X-Forwarded-Email", BOB), ("X-Forwarded-Email", ANN)],  # of two nobody knows whose is whose
            {"X-Forwarded-Email": "model:x"},
        ):
            nobody = Visitor(there, headers=headers)
            nobody.open()
            assert not nobody.has("run")
            assert "named no account" in nobody.text() or "account 'model:x'" in nobody.text()
            nobody.close()


def test_nobody_but_the_proxy_may_connect(team_home):
    """Neither a page nor a socket, also where a header claims to come from the proxy."""
    with behind_a_proxy(team_home, "127.0.0.9") as there:
        claims = {"X-Forwarded-Email": ANN, "X-Forwarded-For": "127.0.0.9:4321", "Forwarded": "for=127.0.0.9"}
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(there, headers=claims), timeout=10)
        assert refused.value.code == 403
        assert urllib.request.urlopen(f"{there}/_stcore/health", timeout=10).status == 200
        with pytest.raises(InvalidStatus, match="403"):
            connect(f"{there.replace('http', 'ws')}/_stcore/stream", additional_headers=claims, origin=there)
        port = int(there.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), 10, source_address=("127.0.0.9", 0)) as proxy:
            proxy.sendall(f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
            assert proxy.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("environment", "address", "told"),
    [
        ({}, "0.0.0.0", "without a login RouteScope listens on this machine alone"),
        ({"ROUTESCOPE_PROXY_HEADER": "X-User"}, "127.0.0.1", "FORWARDED_ALLOW_IPS must be set and empty"),
        ({"ROUTESCOPE_OIDC_URL": "https://x.example"}, "0.0.0.0", "a login by oidc_url needs it"),
    ],
)
def test_what_could_be_reached_without_a_login_does_not_start(environment, address, told, tmp_path):
    import os

    plain = {name: value for name, value in os.environ.items() if name != "FORWARDED_ALLOW_IPS"}
    command = f"-m streamlit run app.py --server.port {free_port()} --server.address {address}".split()
    env = {**plain, "ROUTESCOPE_HOME": str(tmp_path), **environment}
    given = {"cwd": ROOT, "env": env, "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([sys.executable, *command], check=False, **given)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert told in line


def test_another_asgi_server_is_not_reached_from_elsewhere_either(tmp_path):
    """Of `uvicorn app:app --host 0.0.0.0` the configuration tells nothing: each connection does."""
    own = next((one for one in own_addresses() if not one.startswith("127.")), None)
    if own is None:
        pytest.skip("this machine has no other address than loopback")
    import os

    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "app:app", "--host", "0.0.0.0", "--port", str(port)]
    environment = {**os.environ, "ROUTESCOPE_HOME": str(tmp_path), "ROUTESCOPE_FIRST_START": "off"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            serving._wait(process, f"http://127.0.0.1:{port}/_stcore/health", None)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(
                    urllib.request.Request(f"http://{own}:{port}/", headers={"Host": f"localhost:{port}"}),
                    timeout=10,
                )
            assert refused.value.code == 403
            assert b"without a login" in refused.value.read()
        finally:
            process.terminate()


def own_addresses():
    import psutil

    return [
        one.address
        for found in psutil.net_if_addrs().values()
        for one in found
        if one.family == socket.AF_INET
    ]
