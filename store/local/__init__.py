"""The embedded segment store: one process, one data directory."""
