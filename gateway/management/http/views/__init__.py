"""Handlers of the API by the kind of object, and how each kind looks in JSON."""
