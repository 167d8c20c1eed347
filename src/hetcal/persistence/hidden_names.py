"""Names of the hidden files that stand beside a file while it is written or locked."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_LONG = 120


def hidden_beside(target: Path, ending: str) -> Path:
    """Return ``.NAME`` with an ending; a long name is replaced by a digest of it.

    A name has at most 255 bytes on most file systems, on some 143, and the target's own may take
    all of them.

    Examples
    --------
    >>> hidden_beside(Path("out/watch.hetcal"), ".lock").as_posix()
    'out/.watch.hetcal.lock'
    >>> len(hidden_beside(Path("x" * 255), ".lock").name)
    38
    """
    name = os.fsencode(target.name)
    shown = hashlib.sha256(name).hexdigest()[:32] if len(name) > _LONG else target.name
    return target.with_name(f".{shown}{ending}")
