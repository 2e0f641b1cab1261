"""Connections: a socket, the bytes read from it, and those sent."""
