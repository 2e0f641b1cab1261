"""The server: protocols in front, the broker behind."""
