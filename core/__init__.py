"""RouteScope's engine: every retrieval route on one question, side by side. Never imports streamlit."""
