"""Labelled questions, metrics and honest comparisons of routes; runs them only through the engine."""
