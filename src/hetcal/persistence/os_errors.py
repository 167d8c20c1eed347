"""What cannot be written, told in one sentence: which file, why, and what to do."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from hetcal._exceptions import FileWriteError

_ANOTHER_FOLDER = "Choose a folder that you may write to."
_REMEDIES = {
    errno.ENOSPC: "Free some space, or choose a place on another disk.",
    getattr(errno, "EDQUOT", errno.ENOSPC): "Free some space, or choose a place on another disk.",
    errno.EFBIG: "Raise the limit (ulimit -f), or choose a place on another disk.",
    errno.EROFS: _ANOTHER_FOLDER,
    errno.EACCES: _ANOTHER_FOLDER,
    errno.EPERM: _ANOTHER_FOLDER,
    errno.ENOENT: "Create its folder first.",
    errno.ENOTDIR: "Create its folder first.",
    errno.EISDIR: "Name a file, not a folder.",
    errno.EIO: "The disk or the connection to it failed; choose a place on another one.",
}


@contextlib.contextmanager
def translate_os_errors(path: object) -> Iterator[None]:
    """Turn what the system says about writing a file into :class:`FileWriteError`."""
    try:
        yield
    except (FileWriteError, BrokenPipeError):  # told already; nobody reads any more
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).rstrip(".")
        remedy = _REMEDIES.get(error.errno or 0, "Choose another place.")
        raise FileWriteError(
            error.errno or errno.EIO,
            f"{path} could not be written: {reason}. {remedy} What was there before is unchanged.",
        ) from error
