"""What administrators ask of a running server, whichever way the request comes."""
