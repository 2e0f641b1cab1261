"""Needs of readers beside their streams: their groups, and the marks of time in a stream."""
