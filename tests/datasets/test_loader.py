"""Where a data set comes from: folder, cache, download, or a message that helps."""

import io
import zipfile
from dataclasses import replace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest

from hetcal.datasets import (
    DatasetUnavailableError,
    _canonical,
    _download,
    _folder,
    list_datasets,
    load_dataset,
)
from hetcal.datasets._catalogue import FILES, NAMES

RNG = np.random.default_rng(0)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """An empty data folder and an empty cache."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("HETCAL_DATA", str(data))
    monkeypatch.setenv("HETCAL_CACHE", str(cache))
    return data, cache


def tiny_mnist():
    return {
        "X": RNG.integers(0, 256, (40, 784), dtype=np.uint8),
        "y": np.arange(40, dtype=np.uint8) % 10,
    }


def tiny_table(name):
    columns = _canonical.TABLE_COLUMNS[name]
    frame = pd.DataFrame({column: np.arange(6) for column in columns})
    frame = frame.assign(**{column: list("abcabc") for column in NAMES[name].categorical})
    return frame.assign(**{NAMES[name].target: ["no", "yes"] * 3})


@pytest.fixture
def expect(monkeypatch):
    """Make the catalogue expect this content for a file."""

    def set_checksum(key, content):
        spec = replace(FILES[key], sha256=_canonical.checksum(content))
        monkeypatch.setitem(FILES, key, spec)

    return set_checksum


def offline(source):
    raise URLError("no route to host")


def test_folder_is_read_without_any_download(places):
    data, cache = places
    content = tiny_mnist()
    _folder.write(data / "mnist.npz", content)
    loaded = load_dataset("mnist-4v9", fetcher=offline)
    kept = np.isin(content["y"], [4, 9])
    np.testing.assert_array_equal(loaded.X, content["X"][kept])
    np.testing.assert_array_equal(loaded.classes, [4, 9])
    assert load_dataset("mnist10", data_home=data).X.shape == (40, 784)
    assert not cache.exists()


def test_download_is_verified_cached_and_not_repeated(places, expect):
    _, cache = places
    content = tiny_mnist()
    expect("mnist", content)
    calls = []

    def fetcher(source):
        calls.append(source)
        return content

    first = load_dataset("mnist10", fetcher=fetcher)
    again = load_dataset("mnist10", fetcher=offline)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert calls == ["openml:554"]
    assert [path.name for path in cache.iterdir()] == ["mnist.npz"]


def test_table_survives_the_cache(places, expect):
    table = tiny_table("bank-marketing")
    table.loc[2, "job"] = np.nan
    expect("bank-marketing", table)
    first = load_dataset("bank-marketing", fetcher=lambda source: table)
    again = load_dataset("bank-marketing", fetcher=offline)
    assert _canonical.checksum(again.frame) == _canonical.checksum(table)
    assert again.X["job"].isna().tolist() == first.X["job"].isna().tolist()
    assert isinstance(again.X["job"].dtype, pd.CategoricalDtype)
    assert "duration" not in again.X
    assert "duration" in again.frame
    assert again.classes.tolist() == ["no", "yes"]


def test_another_row_order_is_an_error_and_nothing_is_cached(places, expect):
    _, cache = places
    content = tiny_mnist()
    expect("mnist", content)
    reversed_rows = {key: array[::-1] for key, array in content.items()}
    with pytest.raises(
        DatasetUnavailableError, match="openml:554: the content has another checksum"
    ):
        load_dataset("mnist10", fetcher=lambda source: reversed_rows)
    assert not cache.exists()


def test_next_source_is_tried(places, expect):
    content = {**tiny_mnist(), "y": np.array(list("ABCD") * 10)}
    expect("letter", content)

    def only_openml(source):
        return content if source.startswith("openml") else offline(source)

    assert load_dataset("letter", fetcher=only_openml).classes.tolist() == list("ABCD")


def test_offline_message_says_what_to_put_where(places):
    data, cache = places
    with pytest.raises(DatasetUnavailableError) as caught:
        load_dataset("adult", fetcher=offline)
    message = str(caught.value)
    for part in ("adult.csv.gz", str(data), str(cache), "no route to host", "set HETCAL_DATA"):
        assert part in message


def test_no_download_when_told_so(places, monkeypatch):
    monkeypatch.delenv("HETCAL_DATA")
    with pytest.raises(
        DatasetUnavailableError, match=r"HETCAL_DATA \(not set\).*download_if_missing"
    ):
        load_dataset("letter", download_if_missing=False, fetcher=offline)


def test_network_outputs_cannot_be_downloaded(places):
    with pytest.raises(DatasetUnavailableError, match=r"no public download.*cifar10-resnet20\.npz"):
        load_dataset("cifar10-resnet20", fetcher=offline)


def test_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match=r"no data set 'mnist'\. Known names: moons, mnist10"):
        load_dataset("mnist")


@pytest.mark.parametrize("only_probabilities", [False, True])
def test_network_output_from_a_folder(places, only_probabilities):
    data, _ = places
    logits = RNG.normal(size=(12, 10)).astype(np.float32)
    y = (np.arange(12) % 10).astype(np.uint8)
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    if only_probabilities:
        name = "cifar10-wideresnet-16-4"
        _folder.write(data / f"{name}-probs.npz", {"probs": P, "y": y})
    else:
        name = "cifar10-resnet20"
        latents = RNG.normal(size=(12, 64)).astype(np.float32)
        _folder.write(data / f"{name}.npz", {"latents": latents, "logits": logits, "y": y})
    loaded = load_dataset(name)
    np.testing.assert_allclose(loaded.y_proba, P, atol=1e-6)
    np.testing.assert_allclose(loaded.y_proba.sum(axis=1), 1, atol=1e-12)
    differences = loaded.logits - logits
    np.testing.assert_allclose(differences - differences[:, :1], 0, atol=1e-5)
    assert loaded.class_names[3] == "cat"
    assert (loaded.X is None) == only_probabilities
    assert loaded.latents is loaded.X


def test_every_downloadable_source_has_a_reader_and_a_checksum():
    for spec in FILES.values():
        assert set(spec.sources) <= set(_download._READERS)
        assert bool(spec.sources) == bool(spec.sha256)
    assert len(list_datasets()) == len(set(list_datasets())) == len(NAMES) + 1


def test_readers_understand_the_archives(monkeypatch):
    """Small archives in the published layout, through the real readers."""
    cells = {"letter-recognition.data": "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\n"}
    monkeypatch.setattr(_download, "urlopen", lambda url, timeout: _archive(cells))
    letter = _download.fetch("uci:59/letter+recognition.zip")
    assert letter["y"].tolist() == ["T"]
    assert letter["X"].tolist() == [[2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8]]

    monkeypatch.setattr(_canonical, "N_ADULT_TRAIN", 2)
    monkeypatch.setattr(_canonical, "N_ADULT_TEST", 1)
    row = (
        "39, ?, 77516, Bachelors, 13, Never-married, Sales, Wife, White, Male, 2174, 0, 40, Cuba, "
    )
    cells = {"adult.data": f"{row}<=50K\n{row}>50K\n\n", "adult.test": f"|comment\n{row}>50K.\n\n"}
    monkeypatch.setattr(_download, "urlopen", lambda url, timeout: _archive(cells))
    adult = _download.fetch("uci:2/adult.zip")
    assert adult["income"].tolist() == ["<=50K", ">50K", ">50K"]
    assert adult["split"].tolist() == ["train", "train", "test"]
    assert adult["workclass"].isna().all()
    assert adult["age"].dtype == np.int64

    names = ";".join(f'"{c.replace("_", ".")}"' for c in _canonical.TABLE_COLUMNS["bank-marketing"])
    row = (
        '56;"housemaid";"married";"basic.4y";"no";"no";"no";"telephone";"may";"mon";'
        '261;1;999;0;"nonexistent";1.1;93.994;-36.4;4.857;5191;"no"'
    )
    inner = {"bank-additional/bank-additional-full.csv": f"{names}\n{row}\n"}
    cells = {"bank-additional.zip": _archive(inner).getvalue()}
    monkeypatch.setattr(_download, "urlopen", lambda url, timeout: _archive(cells))
    bank = _download.fetch("uci:222/bank+marketing.zip")
    assert bank.iloc[0]["job"] == "housemaid"
    assert bank["nr_employed"].dtype == np.float64


def test_openml_dtypes_give_the_same_checksum(monkeypatch):
    """OpenML hands over categories and floats; the canonical content is the same."""
    content = tiny_mnist()
    frame = pd.DataFrame(content["X"].astype(float)).assign(
        y=pd.Categorical(content["y"].astype(str))
    )
    monkeypatch.setattr(_download, "_openml", lambda data_id: frame)
    assert _canonical.checksum(_download.fetch("openml:554")) == _canonical.checksum(content)

    names = _canonical.TABLE_COLUMNS["credit-default"]
    table = pd.DataFrame(RNG.integers(-2, 9, (5, len(names))), columns=list(names))
    table["default"] = [0, 1, 0, 1, 1]
    given = table.set_axis([f"x{j}" for j in range(1, 24)] + ["y"], axis=1)
    given = given.assign(y=pd.Categorical(given["y"].astype(str)), x1=given["x1"].astype(float))
    monkeypatch.setattr(_download, "_openml", lambda data_id: given)
    assert _canonical.checksum(_download.fetch("openml:42477")) == _canonical.checksum(table)


def test_adult_that_begins_with_the_test_rows_is_put_in_order(monkeypatch):
    monkeypatch.setattr(_canonical, "N_ADULT_TRAIN", 4)
    monkeypatch.setattr(_canonical, "N_ADULT_TEST", 2)
    raw = tiny_table("adult").assign(fnlwgt=[77516, 1, 2, 3, 4, 5])
    expected = _canonical.canonical_table("adult", raw)
    turned = pd.concat([raw.iloc[4:], raw.iloc[:4]])
    found = _canonical.canonical_table("adult", turned)
    assert _canonical.checksum(found) == _canonical.checksum(expected)


@pytest.mark.parametrize("change", ["value", "order", "name", "type"])
def test_checksum_sees(change):
    content = {"X": np.arange(6, dtype=np.uint8).reshape(3, 2), "y": np.array([0, 1, 0])}
    other = {key: array.copy() for key, array in content.items()}
    if change == "value":
        other["X"][1, 1] = 9
    elif change == "order":
        other["X"] = other["X"][::-1]
    elif change == "name":
        other["z"] = other.pop("y")
    else:
        other["X"] = other["X"].astype(np.int64)
    assert _canonical.checksum(content) != _canonical.checksum(other)


def test_features_that_are_not_bytes_are_refused():
    with pytest.raises(ValueError, match="whole numbers from 0 to 255"):
        _canonical.canonical_arrays([[0.5]], [1])
    with pytest.raises(ValueError, match="24 columns were expected, 1 came"):
        _canonical.canonical_table("credit-default", pd.DataFrame({"a": [1]}))


def test_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.delenv("HETCAL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert _folder.user_cache_folder() == tmp_path / "hetcal" / "datasets"


def _archive(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    stream.seek(0)
    return stream
