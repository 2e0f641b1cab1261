"""Addresses, sockets that listen, certificates: facts of a network that every part may need."""
