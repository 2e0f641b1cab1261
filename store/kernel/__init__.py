"""Writes and syncs of files without the interpreter, compiled by Cython from plain Python."""
