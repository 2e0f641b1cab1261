"""Tables of keys and values that clients make by the controller."""
