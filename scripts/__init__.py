"""Things a developer runs by hand."""
