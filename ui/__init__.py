"""What pages are made of. May import streamlit; names no route."""
