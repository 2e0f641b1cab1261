"""Compiled loops over wire bytes (Cython, pure-Python mode)."""
