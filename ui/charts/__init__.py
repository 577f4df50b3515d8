"""Charts as plotly figures. They need data of core only, and import neither streamlit nor the rest of ui."""
