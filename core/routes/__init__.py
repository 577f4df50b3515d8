"""One file a route; `core.route.routes()` finds them."""
