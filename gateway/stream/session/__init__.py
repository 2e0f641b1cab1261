"""State of one connection; no I/O."""
