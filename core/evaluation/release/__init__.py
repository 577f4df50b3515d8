"""The choice of a measured route to ship: criteria, the decision, its certainty, and its snapshot."""
