"""Connections: a socket, what is read from it, and what is sent."""
