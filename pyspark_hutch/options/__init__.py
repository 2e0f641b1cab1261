"""Options of a read and a write: one table, and what is derived from it.

`read_settings` and `write_settings` turn what Spark hands over into frozen settings; `document`
gives the page of all options. Nothing here needs Spark or a server.
"""
