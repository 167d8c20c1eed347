"""`load_dataset`: from the data folder, else from the cache, else downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.datasets import make_moons

from hetcal.datasets import _folder
from hetcal.datasets._base import Dataset, DatasetUnavailableError
from hetcal.datasets._catalogue import FILES, NAMES, FileSpec, NameSpec, list_datasets
from hetcal.datasets._download import download

__all__ = ["load_dataset", "make_paper_moons"]

N_MOONS = 10_000


def load_dataset(
    name: str,
    *,
    data_home: str | Path | None = None,
    download_if_missing: bool = True,
    fetcher: Callable[[str], _folder.Content] | None = None,
) -> Dataset:
    """Load a data set by name.

    Looked for, in this order: in the folder `data_home` or, without one, the folder named by the
    environment variable ``HETCAL_DATA``; in the cache (``HETCAL_CACHE``, else the platform's cache
    folder); on the net (OpenML or the UCI archive), after which it is in the cache. What is
    downloaded is compared with a SHA-256 checksum of its values *in their order*: a source whose
    rows come in another order is an error, never a silent difference, because the paper's splits
    are defined by row numbers.

    Parameters
    ----------
    name : str
        One of `list_datasets`: ``moons``; ``mnist10``, ``mnist-1v7``, ``mnist-4v9``,
        ``mnist-3v8``, ``mnist-3v5``, ``fashion-mnist``, ``letter``; the tables ``adult``,
        ``bank-marketing``, ``credit-default``; the network outputs ``cifar10-*`` and
        ``cifar100-*`` with ``resnet20``, ``resnet56``, ``repvgg_a2`` or ``wideresnet-16-4``.
    data_home : path, optional
        Folder to read from instead of ``HETCAL_DATA``.
    download_if_missing : bool, default True
        False never touches the net.
    fetcher : callable, optional
        ``fetcher(source)`` returns the content of a source such as ``"openml:554"``: a dict of
        arrays or a DataFrame, as in the data folder's files. For mirrors and tests.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetUnavailableError
        When no place has it; the message tells which file to put where.

    Examples
    --------
    >>> from hetcal.datasets import load_dataset
    >>> load_dataset("moons")
    Dataset(name='moons', X=(10000, 2), n_samples=10000, n_classes=2)
    """
    if name == "moons":
        return make_paper_moons(0)
    if name not in NAMES:
        raise ValueError(
            f"load_dataset knows no data set {name!r}. Known names: {', '.join(list_datasets())}."
        )
    spec = NAMES[name]
    file = FILES[spec.file]
    content = _find(name, file, data_home, download_if_missing, fetcher)
    return _BUILDERS[file.kind](name, spec, file, content)


def make_paper_moons(seed: int) -> Dataset:
    """Draw the paper's moons: 10000 points, noise 0.3; each trial has its own, by its seed."""
    X, y = make_moons(n_samples=N_MOONS, noise=0.3, random_state=seed)
    return Dataset(
        "moons",
        X,
        y,
        np.array([0, 1]),
        ("x0", "x1"),
        description="Two interleaving half circles, scikit-learn's make_moons with noise 0.3.",
    )


def _find(
    name: str,
    file: FileSpec,
    data_home: str | Path | None,
    download_if_missing: bool,
    fetcher: Callable[[str], _folder.Content] | None,
) -> _folder.Content:
    home = Path(data_home) if data_home is not None else _folder.data_folder()
    cache = _folder.user_cache_folder()
    for folder in (home, cache):
        if folder is not None and (folder / file.filename).is_file():
            return _folder.read(folder / file.filename)
    looked = (
        f"{home / file.filename if home else 'HETCAL_DATA (not set)'} and {cache / file.filename}"
    )
    remedy = f"Put {file.filename} into a folder and set HETCAL_DATA to it."
    if not file.sources:
        raise DatasetUnavailableError(
            f"load_dataset({name!r}) found no file at {looked}, and there is no public download "
            f"of it. {remedy} ({file.description})"
        )
    if not download_if_missing:
        raise DatasetUnavailableError(
            f"load_dataset({name!r}) found no file at {looked}, and download_if_missing=False. "
            f"{remedy}"
        )
    content = download(name, file, looked=looked, remedy=remedy, fetcher=fetcher)
    _folder.write(cache / file.filename, content)
    return content


def _build_images(
    name: str, spec: NameSpec, file: FileSpec, content: dict[str, np.ndarray]
) -> Dataset:
    X, y = content["X"], content["y"]
    if y.dtype.kind in "iu":
        y = y.astype(np.int64)
    if spec.digits is not None:
        kept = np.isin(y, spec.digits)
        X, y = X[kept], y[kept]
    names = content.get("feature_names")
    if names is None:
        names = np.array([f"pixel{j}" for j in range(X.shape[1])])
    return Dataset(
        name,
        X,
        y,
        np.unique(y),
        tuple(names.tolist()),
        spec.class_names,
        description=file.description,
    )


def _build_network(
    name: str, spec: NameSpec, file: FileSpec, content: dict[str, np.ndarray]
) -> Dataset:
    latents = content.get("latents")
    if "probs" in content:
        y_proba = content["probs"].astype(np.float64)
        y_proba /= y_proba.sum(axis=1, keepdims=True)
        # A probability that float32 rounded to zero gets the smallest one that it can hold.
        logits = np.log(np.maximum(y_proba, np.finfo(np.float32).tiny))
    else:
        logits = content["logits"].astype(np.float64)
        y_proba = softmax(logits, axis=1)
    n_features = 0 if latents is None else latents.shape[1]
    return Dataset(
        name,
        None if latents is None else latents.astype(np.float32),
        content["y"].astype(np.int64),
        np.arange(logits.shape[1]),
        tuple(f"latent{j}" for j in range(n_features)),
        spec.class_names,
        logits,
        y_proba,
        description=file.description,
    )


def _build_table(name: str, spec: NameSpec, file: FileSpec, content: pd.DataFrame) -> Dataset:
    target = content[spec.target]
    is_text = not pd.api.types.is_numeric_dtype(target)
    y = target.to_numpy(dtype=str if is_text else np.int64)
    X = content.drop(columns=[spec.target, *spec.left_out])
    X = X.astype(dict.fromkeys(spec.categorical, "category"))
    return Dataset(
        name,
        X,
        y,
        np.unique(y),
        tuple(X.columns),
        frame=content,
        description=file.description,
    )


_BUILDERS: dict[str, Callable[..., Dataset]] = {
    "images": _build_images,
    "network": _build_network,
    "table": _build_table,
}
