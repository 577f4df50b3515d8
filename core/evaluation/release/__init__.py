"""Which measured route to ship: criteria, the decision, how sure it is, and what is kept of it."""
