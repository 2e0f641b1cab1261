"""Names for programs that use Hutch: these stay, whatever becomes of the packages of the server.

hutch.mewbase    a client of mewbase's protocol
"""
