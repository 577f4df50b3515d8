"""Present: playlists of questions for a team.

Imports core, ui.charts, ui.app and ui.components.
"""
