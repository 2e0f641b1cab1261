"""Jobs around streams that run on Spark, as functions; `hutch pipeline` is their command line.

The modules that a job's own work is in import Spark; arguments, progress and the archive do not.
"""
