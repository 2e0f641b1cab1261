"""`python -m gateway` is `hutch`."""

import sys

from gateway.cli import main

if __name__ == "__main__":
    sys.exit(main())
