"""The programs on Python's clients."""
