"""The history of ``hetcal monitor``: one process at a time, and each run after the other."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetcal._exceptions import InputError
from hetcal.monitor import SupportMonitor
from hetcal.monitor.watched import is_extended, is_same
from hetcal.persistence import describe, load, save
from hetcal.persistence.locks import locked
from hetcal.tables.writing import check_model_target, check_target

if TYPE_CHECKING:
    from hetcal.batches.model import LoadedModel
    from hetcal.cli._monitor_tables import Watched

#: So many of the newest tables are known again.
_MOST_KNOWN = 1000


def alone(history: Path | None, wait: float, say: Any) -> contextlib.AbstractContextManager[None]:
    """Keep other processes from continuing the same history: what one adds the other would lose."""
    if history is None:
        return contextlib.nullcontext()
    if history.is_file():  # whatever its name: where it is no history, continuing it says so
        check_target(history, overwrite=True)
    else:
        check_model_target(history, overwrite=True)
    return locked(
        history, wait=wait, waiting=lambda: say(f"Another process is writing {history}", None)
    )


def continued(
    history: Path,
    loaded: LoadedModel,
    calibration: list[str] | None,
    held_out: str | None,
    settings: dict[str, Any],
    notes: list[str],
) -> SupportMonitor:
    watcher = load(history)
    if not isinstance(watcher, SupportMonitor):
        raise InputError(f"{history} holds no history but a {type(watcher).__name__}.")
    mine = getattr(loaded.calibrator, "calibrator_", loaded.calibrator)
    if is_extended(mine, watcher.calibrator_):
        n, more = (len(c.calibration_labels()) for c in (mine, watcher.calibrator_))
        notes.append(
            f"{history} was extended in Python to {more:,} calibration items and is continued with "
            f"them; the model's own file has {n:,}."
        )
    elif not is_same(mine, watcher.calibrator_):
        raise InputError(f"{history} was begun with another calibrator. Begin another file.")
    for name, given in settings.items():
        if given != getattr(watcher, name):
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                f"{history} was begun with {option} {getattr(watcher, name):g}; got {given:g}. "
                f"Leave {option} out, or begin another file."
            )
    _check_reference(history, watcher, calibration, held_out, notes)
    return watcher


def _check_reference(
    history: Path,
    watcher: SupportMonitor,
    calibration: list[str] | None,
    held_out: str | None,
    notes: list[str],
) -> None:
    """Let one command line serve the first run and the later ones."""
    if not calibration and held_out is None:
        return
    option = "--calibration" if calibration else "--held-out"
    begun = "--held-out" if watcher.reference == "split" else "--calibration"
    if option != begun or len(watcher.scores_) == 1:
        raise InputError(
            f"{history} was begun without {option} and goes on so. Leave {option} out, or begin "
            "another file."
        )
    notes.append(f"{history} holds the reference already; {option} makes no new one.")


def recorded(
    watcher: SupportMonitor,
    history: Path,
    loaded: LoadedModel,
    table: str,
    watched: Watched,
    *,
    insist: bool,
) -> list[str]:
    """Write the history, and say whether these rows were counted in it before.

    Nothing is written of a second time unless it is insisted on, which rows without
    ``--labels-only`` do: a stream may repeat itself, but a label becomes known once.
    """
    past = describe(history)["metadata"] if history.is_file() else {}
    known, again = {}, []
    for kind, counted in (("rows", watched.n_rows), ("labels", watched.n_labels)):
        stored = past.get(f"counted_{kind}")
        digests = stored if isinstance(stored, list) else []
        again += [kind] if counted and watched.digest in digests else []
        known[f"counted_{kind}"] = [*digests, *([watched.digest] if counted else [])][-_MOST_KNOWN:]
    seen = f"{table} holds {' and '.join(again)} that {history} has counted before"
    if again and not insist:
        raise InputError(
            f"{seen}. Nothing was written. Pass the rows whose labels are new, or --again to count "
            "them twice."
        )
    save(watcher, history, metadata={"table": loaded.roles.to_dict()} | known)
    return [f"{seen}; they count twice now."] if again else []
