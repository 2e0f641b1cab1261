"""Pravega's controller: scopes, streams, tables and transactions, for clients that call it by gRPC.

Everything but `server` and `rpc` does without gRPC. Nothing here is imported while its port is off.
"""
