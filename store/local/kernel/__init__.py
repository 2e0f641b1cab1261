"""Loops that run without the interpreter, compiled by Cython from plain Python files."""
