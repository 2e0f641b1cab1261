"""What administrators do to a running server, whichever way they come."""
