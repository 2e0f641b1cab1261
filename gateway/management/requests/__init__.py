"""Requests of administrators to a running server, whichever way they come."""
