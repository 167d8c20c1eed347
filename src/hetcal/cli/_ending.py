"""A command that is asked to end removes what it has half written, and then ends."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# Ctrl-C is an exception already. Windows knows none of these but the first.
_REQUESTS = ("SIGTERM", "SIGHUP")


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """Turn a request to end into ``SystemExit`` with the exit code that shells expect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    changed = []
    for name in _REQUESTS:
        number = getattr(signal, name, None)
        # What somebody ignores (nohup) or handles already stays as it is.
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
            changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second request ends it at once
    raise SystemExit(128 + number)
