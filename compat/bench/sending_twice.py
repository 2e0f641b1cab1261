"""A `hutch` of a cluster that sends small appends twice, to see what sending them once saves.

They are in a data file and in the journal. The log's messages refer to what they have already.
"""

import sys

from gateway.cli import main
from store.replica import operations

if __name__ == "__main__":
    vars(operations)["REPEATED_BYTES_MIN"] = sys.maxsize  # a constant for all but this
    sys.exit(main())
