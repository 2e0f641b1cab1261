"""Two members of a cluster on one log, in one thread: all that happens is drawn from a seed."""
