"""Listeners and connections over TLS, and the files of certificates."""
