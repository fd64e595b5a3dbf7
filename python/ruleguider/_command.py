"""The command `ruleguider`, as part of the wheel."""

import signal
import sys

from . import _ruleguider


def main() -> int:
    """Runs the command line and returns its exit code."""
    # The command handles Ctrl-C itself; a closed pipe ends it quietly.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _ruleguider.command(["ruleguider", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
