"""What pages are made of: components, widgets, tables and charts on screen, and the view in the address.

May import streamlit and all of `core` but its cli. Names no route. Text becomes HTML through `markup`
alone, and a table through `frames` alone.
"""
