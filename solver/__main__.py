"""`python -m solver` is `truc`, and `truc` begins here: an interruption is caught from the first import on."""

import signal
import sys

from solver.signals import interrupt


def run() -> None:
    """Run the command line.  Whoever ends the program gets what Ctrl-C gets: one line, and exit code 130."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP, and with nohup it is to be ignored
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, interrupt)
    try:
        from solver.cli import main

        main(prog_name="truc")
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("Interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    run()
