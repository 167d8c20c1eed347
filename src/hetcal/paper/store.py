"""Where results are kept: one small file per trial, and tables of finished ones.

A store is a folder. The runner writes every result at once as ``trials/<data set>/<key>.json``; a
file is there whole or not at all, so a run may be killed at any moment and several may share a
store. ``*.csv`` files in the folder, made by :meth:`Store.export`, hold results too and are never
written by the runner. ``cache/`` keeps what is expensive and can be computed again.

Reading results::

    from hetcal.paper.store import load_results
    results = load_results("experiments/results")   # a DataFrame, one row per trial and method

with the columns ``dataset``, ``classifier``, ``n_cal``, ``seed``, ``method``, ``key``, then
`METRICS` (NaN where a metric does not apply), ``seconds`` of processor time and ``n_test``.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal.paper.settings import DATASETS, Trial
from hetcal.persistence.atomic_file import write_atomic
from hetcal.persistence.os_errors import translate_os_errors

# hh is the published hidden heterogeneity for "hh", the default one for "hh-out-of-sample", whose
# parts are hh_global and hh_local, with the p-value of its test; all are means over the test items.
METRICS = (
    *("brier", "accuracy", "log_loss", "ece", "ece_debiased"),
    *("hh", "hh_global", "hh_local", "p_value"),
)
_NAMES = ("dataset", "classifier", "n_cal", "seed", "method")
_FIGURES = (*METRICS, "seconds", "n_test")
COLUMNS = (*_NAMES, "key", *_FIGURES)


def default_folder() -> Path:
    """Return the folder named by ``HETCAL_RESULTS``, else one in the user's cache."""
    value = os.environ.get("HETCAL_RESULTS")
    if value:
        return Path(value).expanduser()
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "hetcal" / "paper"


def load_results(folder: str | Path | None = None, dataset: str | None = None) -> pd.DataFrame:
    """Return the results of a store, one row per trial and method.

    Parameters
    ----------
    folder : path, optional
        The store; `default_folder` by default.
    dataset : str, optional
        Only this data set.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`, sorted. Results of settings that are no longer current are left out.

    Examples
    --------
    >>> import tempfile
    >>> load_results(tempfile.mkdtemp()).shape
    (0, 17)
    """
    return Store(folder).frame(dataset)


class Store:
    """Results in a folder.

    Parameters
    ----------
    folder : path, optional
        `default_folder` by default. Need not exist yet.
    """

    def __init__(self, folder: str | Path | None = None):
        self.folder = default_folder() if folder is None else Path(folder).expanduser()
        self._tables: dict[str, pd.DataFrame] = {}

    def has(self, trial: Trial) -> bool:
        """Tell whether a result is there."""
        return self._file(trial).is_file() or trial.key in self._table(trial.dataset).index

    def read(self, trial: Trial) -> dict[str, float] | None:
        """Return the figures of one trial, or None where there are none yet."""
        try:
            return json.loads(self._file(trial).read_text())["result"]
        except FileNotFoundError:
            table = self._table(trial.dataset)
            if trial.key not in table.index:
                return None
            values = {name: float(table.at[trial.key, name]) for name in _FIGURES}  # type: ignore[arg-type]
            return {name: value for name, value in values.items() if not math.isnan(value)}

    def write(self, trial: Trial, result: Mapping[str, float]) -> None:
        """Keep the figures of one trial."""
        wrong = set(result) - set(_FIGURES)
        if wrong:
            raise ValueError(f"Store.write: no column for {sorted(wrong)}; columns are {COLUMNS}.")
        figures = {name: float(value) for name, value in result.items() if not math.isnan(value)}
        text = json.dumps({"setting": trial.setting, "result": figures}, indent=1)
        _write(self._file(trial), text.encode())

    def frame(self, dataset: str | None = None) -> pd.DataFrame:
        """Return all current results, see :func:`load_results`."""
        names = DATASETS if dataset is None else [dataset]
        parts = [part for name in names for part in (self._files(name), self._table(name))]
        parts = [part.reset_index() for part in parts if len(part)]
        if not parts:
            return pd.DataFrame(columns=list(COLUMNS))
        table = pd.concat(parts, ignore_index=True).drop_duplicates("key")
        table = table.sort_values([*_NAMES], ignore_index=True)
        return table.astype({"n_cal": int, "seed": int, "n_test": int})[list(COLUMNS)]

    def export(self, folder: str | Path) -> list[Path]:
        """Write one table per data set, joined with the tables that the folder has already.

        Returns
        -------
        list of Path
            The files written.
        """
        target = Store(folder)
        written = []
        for dataset in DATASETS:
            parts = [target._table(dataset).reset_index(), self.frame(dataset)]
            table = pd.concat([part for part in parts if len(part)] or parts)
            if table.empty:
                continue
            table = table.drop_duplicates("key")
            table = table.sort_values([*_NAMES])[list(COLUMNS)]
            text = table.to_csv(index=False, lineterminator="\n", float_format="%.10g")
            written.append(target.folder / f"{dataset}.csv")
            _write(written[-1], text.encode())
        return written

    def has_arrays(self, name: str) -> bool:
        """Tell whether arrays are there."""
        return self._arrays(name).is_file()

    def read_arrays(self, name: str) -> dict[str, NDArray] | None:
        """Return arrays kept by :meth:`write_arrays`, or None."""
        path = self._arrays(name)
        if not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}

    def write_arrays(self, name: str, arrays: Mapping[str, NDArray]) -> None:
        """Keep arrays that can be computed again."""
        content = io.BytesIO()
        np.savez(content, **arrays)  # type: ignore[arg-type]
        _write(self._arrays(name), content.getvalue())

    def _arrays(self, name: str) -> Path:
        return self.folder / "cache" / f"{name}.npz"

    def _file(self, trial: Trial) -> Path:
        return self.folder / "trials" / trial.dataset / f"{trial.key}.json"

    def _files(self, dataset: str) -> pd.DataFrame:
        """Return the results that have a file of their own, by key."""
        rows = []
        for path in sorted((self.folder / "trials" / dataset).glob("[!.]*.json")):
            kept = json.loads(path.read_text())
            names = {name: kept["setting"][name] for name in _NAMES}
            rows.append({"key": path.stem, **names, **kept["result"]})
        return _current(rows)

    def _table(self, dataset: str) -> pd.DataFrame:
        """Return the results of the data set's CSV, by key; read once."""
        if dataset not in self._tables:
            path = self.folder / f"{dataset}.csv"
            rows = pd.read_csv(path).to_dict("records") if path.is_file() else []
            self._tables[dataset] = _current(rows)
        return self._tables[dataset]


def _current(rows: Iterable[Mapping]) -> pd.DataFrame:
    """Return a table by key, without rows whose settings are no longer those of the code."""
    kept = [row for row in rows if Trial(*(row[name] for name in _NAMES)).key == row["key"]]
    table = pd.DataFrame(kept, columns=list(COLUMNS)).set_index("key")
    # A column that nothing was measured for is a column of numbers too.
    return table.astype(dict.fromkeys(_FIGURES, float))


def _write(path: Path, content: bytes) -> None:
    """Write so that the file is there whole or not at all, also after a loss of power."""
    with translate_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, content)
