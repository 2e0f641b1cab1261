"""A data directory on several machines: each change of it is a message of one replicated log."""
