"""Which measured route to ship: criteria, the decision, how sure it is, and its snapshot."""
