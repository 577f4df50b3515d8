"""Which route to ship: criteria, the gate, how sure it is, report and snapshot."""
