"""Commands of `hutch` besides the server: `pipeline` and `store`."""
