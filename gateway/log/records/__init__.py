"""Records into and out of a stream's log, for any protocol."""
