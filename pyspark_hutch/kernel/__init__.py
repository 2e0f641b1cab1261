"""Compiled loops over the entries of chunks (Cython, pure-Python mode)."""
