"""Compiled loops over chunks (Cython, pure-Python mode)."""
