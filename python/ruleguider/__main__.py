"""`python -m ruleguider` is the command `ruleguider`."""

import sys

from ._command import main

if __name__ == "__main__":
    sys.exit(main())
