"""One file a route; `core.routes.declare.routes()` finds them."""
