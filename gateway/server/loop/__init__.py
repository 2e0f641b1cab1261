"""The event loop: what is done at the end of a turn, later, or on a thread."""
