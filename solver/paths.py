"""What this machine offers: a cache for compiled code, the strategies that come with the program, cores."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from games.rules import Rules, preset, preset_names

APPLICATION = "le-truc"


def cache_folder() -> Path | None:
    """A folder for compiled code that exists, can be written and is the user's own; None if there can be none.

    The user's cache folder, else one in the folder for temporary files, where it must not be somebody else's: what is
    read from it is run.
    """
    user_id = os.getuid() if hasattr(os, "getuid") else 0  # Windows gives each user a folder for temporary files
    for folder in (_usual_folder(), _shared_folder(user_id)):
        # Without a home folder the path may come out relative: not a place to be found again.
        if folder is not None and folder.is_absolute() and _is_usable(folder, user_id):
            return folder
    return None


def _usual_folder() -> Path | None:
    import platformdirs  # only what compiles needs it

    try:
        return Path(platformdirs.user_cache_dir(APPLICATION, appauthor=False))
    except (OSError, RuntimeError):  # no home folder
        return None


def _shared_folder(user_id: int) -> Path | None:
    try:
        return Path(tempfile.gettempdir()) / f"{APPLICATION}-{user_id}"
    except OSError:  # no folder for temporary files
        return None


def _is_usable(folder: Path, user_id: int) -> bool:
    """Whether a folder is there, or could be made, and is private to this user and writable."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return False
    if os.name == "nt":
        return True
    # A link, or a folder that others may write, could be exchanged behind our back.
    return stat.S_ISDIR(status.st_mode) and status.st_uid == user_id and not status.st_mode & 0o022


def shipped_strategy(variant: str) -> Path | None:
    """The strategy file (points per hand) that comes with the program for one of its rule sets, None if none does."""
    return _shipped(variant, "points/strategy.safetensors")


def shipped_for(rules: Rules) -> Path | None:
    """The strategy file that comes with the program for a rule set, whatever that is called, None if none does."""
    same = (name for name in preset_names() if preset(name).hash == rules.hash)
    return next((file for file in map(shipped_strategy, same) if file is not None), None)


def shipped_table(variant: str) -> Path | None:
    """The equity table of the match that comes with the program for one of its rule sets, None if none does."""
    return _shipped(variant, "match/equity.json")


def shipped_openings(variant: str) -> Path | None:
    """How often who raises at each score, a CSV file; None if none comes with the program."""
    return _shipped(variant, "match/openings.csv")


def _shipped(variant: str, name: str) -> Path | None:
    """A file among the results in a checkout, among the package's data in an installed program."""
    package = Path(__file__).resolve().parent
    for folder in (package.parent / "results", package / "shipped"):
        file = folder / variant / name
        if file.is_file():
            return file
    return None


def usable_threads() -> int:
    """Threads by default: the cores this process may use, at most 4, for a tree's blocks do not divide into more."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, 4)
