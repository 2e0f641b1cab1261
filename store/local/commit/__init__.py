"""Commits: changes put into rounds, and the journal that has them."""
