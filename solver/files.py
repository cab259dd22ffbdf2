"""Files that other processes, full disks and kills cannot leave half written."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file as a whole or not at all, whatever happens meanwhile; of a link, the file that it leads to.

    Raises OSError, whose filename is `path`.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        mode = _mode(target)
        with open(temporary, "xb") as file:  # the umask decides who may read it
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None
        raise


def _mode(target: Path) -> int | None:
    """The permissions of a file that is to be replaced, None if there is none yet.  Raises OSError if it is read-only,
    which would not keep it from being replaced."""
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return None
    if not mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it is read-only", str(target))
    return mode


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote `path`, which must be `locked`: those
    of a process at work look the same.  Raises OSError."""
    target = Path(os.path.realpath(path))
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.????????.tmp"):  # not those of NAME.anything
        leftover.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Make sure, as far as can be known, that `path` can be written.  Raises OSError."""
    target = Path(os.path.realpath(path))
    _mode(target)
    with tempfile.NamedTemporaryFile(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent):
        pass


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A context in which no other process that asks for it gets `path`.  Raises BlockingIOError if another has it.

    The lock is on a file beside it, and ends with the process even if that is killed.  Where there are no such locks
    (Windows, some network folders) it keeps nobody away.
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        yield
        return
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.lock")
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError:  # no locks here
            break
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                break
        os.close(descriptor)  # whoever had it has removed it meanwhile
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(lock)
        os.close(descriptor)
