"""`make test` as an ordinary user on bare Debian systems, with the Python of each."""
