"""Management of a running server: the HTTP API, and the socket that `hutch ctl` uses."""
