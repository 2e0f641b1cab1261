"""`rabbitmqctl` and `rabbitmq-streams`, as far as client suites call them, on a running Hutch.

Run by the scripts in `../bin/`. They have to start in a moment: nothing is imported here that takes
long, which `typing`, `dataclasses` and `argparse` do. They speak to the socket named by
HUTCH_ADMIN_SOCKET (default `data/admin.sock`) and say what RabbitMQ's tools say, in their layout,
with their exit codes.
"""
