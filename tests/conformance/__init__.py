"""Every promise of store/api.py, tested against every implementation of it."""
