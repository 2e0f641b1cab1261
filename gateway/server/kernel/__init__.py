"""Kernels of the server: system calls that every message needs."""
