"""Handlers of the frames that clients send."""
