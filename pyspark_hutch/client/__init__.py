"""A blocking client of the stream protocol: one thread, bounded waits, no event loop."""
