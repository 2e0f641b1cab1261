"""gRPC over HTTP/2: calls of one request and one answer, at a port of the server's own."""
