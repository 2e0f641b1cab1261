"""The handlers of requests, by what they are about; `table.py` says which message goes to which."""
