"""The same bytes to two servers, the answers side by side: where does Hutch differ from RabbitMQ?

`scripts/` holds what is sent, as data; `runner` plays it on one server; `normal` writes the answers
in words that leave out what may differ; `expected` lists the differences that are meant.
Frames are built here by hand: a comparison that shared the server's codec would share its errors.
"""
