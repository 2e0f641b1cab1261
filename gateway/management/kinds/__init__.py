"""Kinds of objects that administrators see and change, each described once."""
