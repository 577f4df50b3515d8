"""Sessions: every run ever made."""

import streamlit as st

st.write("todo")
