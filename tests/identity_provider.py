"""A small OpenID Connect provider: code flow with PKCE, signed id tokens, a login form, and sign-out."""

from __future__ import annotations

import base64
import hashlib
import html
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

CLIENT, SECRET = "routescope", "the-client-secret-of-the-tests"
FORM = """<form method=post><input name=email aria-label=Email><label><input type=checkbox name=verified
checked> verified</label><button>Continue</button></form>"""


class Provider:
    """`address` is its issuer. Everybody who names an email address is let in as that."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.signed_out: list[str] = []  # where people were sent back to
        self._key = RSAKey.generate_key(2048, parameters={"kid": "1", "use": "sig", "alg": "RS256"})
        self._codes: dict[str, dict[str, str]] = {}
        routes = [
            Route("/.well-known/openid-configuration", self._metadata),
            Route("/authorize", self._authorize, methods=["GET", "POST"]),
            Route("/token", self._token, methods=["POST"]),
            Route("/jwks", self._jwks),
            Route("/end", self._end),
        ]
        self.app = Starlette(routes=routes)

    async def _metadata(self, _request: Request) -> Response:
        here = self.address
        return JSONResponse(
            {
                "issuer": here,
                "authorization_endpoint": f"{here}/authorize",
                "token_endpoint": f"{here}/token",
                "jwks_uri": f"{here}/jwks",
                "end_session_endpoint": f"{here}/end",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            }
        )

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        if asked.get("client_id") != CLIENT or asked.get("response_type") != "code":
            return HTMLResponse(html.escape(f"not known: {asked}"), 400)
        if request.method == "GET":
            return HTMLResponse(FORM)
        form = await request.form()
        code = secrets.token_urlsafe(16)
        verified = "yes" if form.get("verified") else ""
        self._codes[code] = {**asked, "email": str(form["email"]), "verified": verified}
        return RedirectResponse(f"{asked['redirect_uri']}?code={code}&state={asked['state']}", 303)

    async def _token(self, request: Request) -> Response:
        form = await request.form()
        basic = request.headers.get("authorization", "").removeprefix("Basic ")
        user, _, password = base64.b64decode(basic).decode().partition(":")
        known = self._codes.pop(str(form.get("code")), None)
        digest = hashlib.sha256(str(form.get("code_verifier")).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            known is None
            or (user, password) != (CLIENT, SECRET)
            or challenge != known.get("code_challenge")
            or form.get("redirect_uri") != known["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {
            "iss": self.address,
            "sub": known["email"],
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": known.get("nonce"),
            "email": known["email"],
            "email_verified": bool(known["verified"]),
        }
        token = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self._key)
        return JSONResponse(
            {"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "id_token": token}
        )

    async def _jwks(self, _request: Request) -> Response:
        return JSONResponse({"keys": [self._key.as_dict(private=False)]})

    async def _end(self, request: Request) -> Response:
        back = request.query_params["post_logout_redirect_uri"]
        self.signed_out.append(back)
        return RedirectResponse(back, 303)


@contextmanager
def provider() -> Iterator[Provider]:
    """One on a free port of this machine."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        found = Provider(f"http://localhost:{bound.getsockname()[1]}")
        server = uvicorn.Server(uvicorn.Config(found.app, log_level="error"))
        thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield found
        server.should_exit = True
        thread.join()
