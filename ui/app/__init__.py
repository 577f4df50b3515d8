"""What every page stands on: state, address, links, the run and evaluation opened, escaping, jobs.

Imports core and ui.charts.
"""
