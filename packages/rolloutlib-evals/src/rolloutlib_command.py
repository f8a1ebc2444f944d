"""The program `rolloutlib`.

It stands beside the package, whose import takes a moment in which Ctrl-C would show a traceback.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Import the command and run it. Until then Ctrl-C ends the process at once."""
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:  # and not ignored, as in a job in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from rolloutlib.evals._command import main as run

    if is_heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
