"""The handlers of requests, by subject; `table.py` says which message goes to which."""
