"""Downloading: fetch from a source, bring into canonical form, verify, hand over.

This is the only module that touches the net. A source is a word such as ``"openml:554"`` or
``"uci:2/adult.zip"``; `fetch` turns one into content, and anything with its signature may take
its place.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from urllib.request import urlopen

import pandas as pd
from sklearn.datasets import fetch_openml

from hetcal.datasets._base import DatasetUnavailableError
from hetcal.datasets._canonical import canonical_arrays, canonical_table, checksum
from hetcal.datasets._catalogue import FileSpec
from hetcal.datasets._folder import Content

__all__ = ["download", "fetch"]

UCI = "https://archive.ics.uci.edu/static/public/"
TIMEOUT_SECONDS = 60
LETTER_FEATURES = (
    *("x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar", "y2bar", "xybar"),
    *("x2ybr", "xy2br", "x-ege", "xegvy", "y-ege", "yegvx"),
)


def download(
    name: str,
    file: FileSpec,
    *,
    looked: str,
    remedy: str,
    fetcher: Callable[[str], Content] | None = None,
) -> Content:
    """Content of `file` from the first of its sources that gives exactly what is expected.

    Raises
    ------
    DatasetUnavailableError
        When none does; the message tells, source by source, whether it could not be reached or
        gave something else.
    """
    fetcher = fetch if fetcher is None else fetcher
    failures = []
    for source in file.sources:
        try:
            content = fetcher(source)
        # Whatever a source does wrong (no net, gone, another format), the next one is tried and
        # the user is told.
        except Exception as error:
            failures.append(f"{source}: {type(error).__name__}: {error}")
            continue
        found = checksum(content)
        if found == file.sha256:
            return content
        failures.append(
            f"{source}: the content has another checksum ({found[:12]}..., expected "
            f"{file.sha256[:12]}...): values or their order differ, so it was not used"
        )
    raise DatasetUnavailableError(
        f"load_dataset({name!r}) found no file at {looked}, and no download succeeded "
        f"({'; '.join(failures)}). {remedy}"
    )


def fetch(source: str) -> Content:
    """Canonical content of one source, from the net.

    Parameters
    ----------
    source : str
        ``"openml:<data id>"`` (the id pins the version) or ``"uci:<path in the archive>"``.
    """
    kind, _, place = source.partition(":")
    return _READERS[source]() if kind == "openml" else _READERS[source](_uci_archive(place))


def _openml(data_id: int) -> pd.DataFrame:
    # No cache of scikit-learn's: the verified content is kept in ours.
    return fetch_openml(data_id=data_id, as_frame=True, parser="pandas", cache=False).frame


def _openml_arrays(data_id: int, feature_names: tuple[str, ...] | None = None) -> Content:
    frame = _openml(data_id)
    return canonical_arrays(frame.iloc[:, :-1], frame.iloc[:, -1], feature_names)


def _uci_archive(place: str) -> zipfile.ZipFile:
    with urlopen(UCI + place, timeout=TIMEOUT_SECONDS) as answer:
        return zipfile.ZipFile(io.BytesIO(answer.read()))


def _read_csv(archive: zipfile.ZipFile, member: str, **options) -> pd.DataFrame:
    with archive.open(member) as stream:
        return pd.read_csv(stream, keep_default_na=False, skipinitialspace=True, **options)


def _uci_letter(archive: zipfile.ZipFile) -> Content:
    frame = _read_csv(archive, "letter-recognition.data", header=None)
    return canonical_arrays(frame.iloc[:, 1:], frame.iloc[:, 0], LETTER_FEATURES)


def _uci_adult(archive: zipfile.ZipFile) -> Content:
    train = _read_csv(archive, "adult.data", header=None)
    test = _read_csv(archive, "adult.test", header=None, skiprows=1)
    return canonical_table("adult", pd.concat([train, test], ignore_index=True))


def _uci_bank(archive: zipfile.ZipFile) -> Content:
    inner = zipfile.ZipFile(io.BytesIO(archive.read("bank-additional.zip")))
    frame = _read_csv(inner, "bank-additional/bank-additional-full.csv", sep=";")
    return canonical_table("bank-marketing", frame)


_READERS: dict[str, Callable[..., Content]] = {
    "openml:554": lambda: _openml_arrays(554),
    "openml:40996": lambda: _openml_arrays(40996),
    "openml:6": lambda: _openml_arrays(6, LETTER_FEATURES),
    "openml:1590": lambda: canonical_table("adult", _openml(1590)),
    "openml:42477": lambda: canonical_table("credit-default", _openml(42477)),
    "uci:59/letter+recognition.zip": _uci_letter,
    "uci:2/adult.zip": _uci_adult,
    "uci:222/bank+marketing.zip": _uci_bank,
}
