"""The event loop: work at the end of a turn, later, or on a thread."""
