"""Tools for coding agents on a server: the Model Context Protocol over streamable HTTP, by roles."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from core.domain import people
from ui.app import account

PATH = "/mcp"


class Agents:
    """Answers each request on behalf of the account that its token, or the login, names. It keeps no session:
    a role that is taken away applies to the next request.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with 401 nobody, with 403 an account that may not look, with 405 what is no POST."""
        request = Request(scope)
        who = account.of_agent(request)
        why = people.why_not("look", who)
        if why:
            headers = None if who.account else {"WWW-Authenticate": "Bearer"}
            await PlainTextResponse(why, 403 if who.account else 401, headers)(scope, receive, send)
        elif request.method != "POST":  # there are no events that a client could wait for
            await PlainTextResponse("send requests by POST", 405, {"Allow": "POST"})(scope, receive, send)
        else:
            from mcp.server.transport_security import TransportSecuritySettings

            from core.api.mcp_server import server

            app = server().streamable_http_app(
                streamable_http_path=PATH,
                json_response=True,
                stateless_http=True,
                # The server's own middleware has checked host and origin.
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            )
            async with app.router.lifespan_context(app):
                with people.acting(who):
                    await app({**scope, "path": PATH, "root_path": ""}, receive, send)


ROUTE = Route(PATH, Agents())
