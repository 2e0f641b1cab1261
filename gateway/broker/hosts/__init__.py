"""Virtual hosts with all that is in them, and the clients that have entered one."""
