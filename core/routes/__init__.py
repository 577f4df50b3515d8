"""One file a route; `core.routes.registry.routes()` finds them."""
