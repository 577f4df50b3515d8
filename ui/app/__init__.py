"""The foundation of all pages: state, address, links, the open run and evaluation, escaping, jobs.

It imports core and ui.charts.
"""
