"""Files that the server and this package share: client, wire table, and the form of what is stored.

They are links to the server's own sources, so each fact is written once; a wheel holds copies of
them. Under these names they load nothing called `gateway` or `store`, which on a Spark cluster may
be packages of a user's job. They lie here as they lie in `gateway`, import each other relatively,
and nothing beside Python itself.
"""
