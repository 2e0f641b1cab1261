"""The segment store: named append-only runs of bytes, their attributes, and tables."""
