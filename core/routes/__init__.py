"""The routes: one file each, which is found by being here. `make route NAME=my_route` writes one.

`registry` finds them; a route imports how routes are declared, the steps, and the domain's types, and nothing
else.
"""
