"""Exit codes, and errors as one sentence."""

from __future__ import annotations

FAILURE, USAGE, NOT_REACHED, BAD_FILE, INTERRUPTED = 1, 2, 3, 4, 130
DEBUG = "TRUC_DEBUG"  # an environment variable: show tracebacks
MAX_MESSAGE = 600


class Failure(Exception):  # noqa: N818 (it is an outcome that was foreseen)
    """A sentence for the user, and the exit code."""

    def __init__(self, message: str, code: int = FAILURE) -> None:
        super().__init__(message)
        self.code = code


def one_sentence(message: str, hint: str = "") -> str:
    """A message on one printable line that ends with a period; the text in it may come from anybody."""
    line = " ".join(message.split())
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    if len(line) > MAX_MESSAGE:
        line = line[: MAX_MESSAGE // 2] + " ... " + line[-MAX_MESSAGE // 2 :]
    return line.rstrip(".") + hint + "."
