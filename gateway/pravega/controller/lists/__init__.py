"""Lists of scopes and of what is in them, as far as a caller may see it."""
