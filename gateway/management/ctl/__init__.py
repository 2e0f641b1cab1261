"""`hutch ctl`, `hutch import` and `hutch export`: a running server, changed from a shell."""
