"""Code that programs, the server and the data source for Spark share.

    hutch.client     a client of the stream protocol, without an event loop
    hutch.mewbase    a client of mewbase's protocol, for asyncio
    hutch.stream     frames of the stream protocol to messages and back
    hutch.pravega    frames of Pravega's wire protocol to messages and back
    hutch.layout     the codec of both, from the fields of a message
    hutch.formats    what is stored: chunks, entries, sub-batches, messages of AMQP 1.0

Programs import the two clients: these names stay, whatever becomes of the server's packages. Only
`hutch.mewbase` needs more than Python's own library.
"""
