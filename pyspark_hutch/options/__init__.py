"""Options of a read and a write: they annotate the fields of the settings that they fill.

`read_settings` and `write_settings` turn Spark's options into frozen settings; `document`
gives the page of all options. Nothing here needs Spark or a server.
"""
