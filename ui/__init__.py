"""The dashboard: components, widgets, tables and charts on screen, and the view in the address.

It may import streamlit and all of `core` but its cli, and names no route. Text becomes HTML only through
`markup`, and tables are drawn only through `components.tables`.
"""
