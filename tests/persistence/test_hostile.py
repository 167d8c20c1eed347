"""Damaged, lying and attacking files: one exception, a clear text, little time and memory."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import hetcal
from hetcal.persistence import describe
from hetcal.similarity import ForestProximity

HEADER = struct.Struct("<8sIIQ32s")
FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz_load.py"
GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "v1"


@pytest.fixture
def path(data, tmp_path) -> Path:
    swc = data.fitted(hetcal.SimilarityCalibrator(ForestProximity(5)))
    hetcal.save(swc, tmp_path / "c.hetcal", date=None)
    return tmp_path / "c.hetcal"


def parts(path: Path) -> tuple[dict, list[bytes]]:
    content = path.read_bytes()
    start = HEADER.size + HEADER.unpack(content[: HEADER.size])[3]
    manifest = json.loads(content[HEADER.size : start])
    arrays = []
    for entry in manifest["arrays"]:
        block = content[start : start + entry["bytes"]]
        arrays.append(zlib.decompress(block) if entry["encoding"] == "zlib" else block)
        start += entry["bytes"]
    return manifest, arrays


def rewrite(path: Path, manifest: dict, blocks: list[bytes], *, text: bytes | None = None) -> None:
    """Write a file with right checksums, whatever it says."""
    for entry, block in zip(manifest.get("arrays", []), blocks, strict=False):
        entry.setdefault("sha256", "")
        entry |= {"bytes": len(block), "sha256": hashlib.sha256(block).hexdigest()}
    text = json.dumps(manifest).encode() if text is None else text
    head = HEADER.pack(b"\x89HETCAL\n", 1, 0, len(text), hashlib.sha256(text).digest())
    path.write_bytes(head + text + b"".join(blocks))


def change(path: Path, edit) -> None:
    """Let ``edit`` change the manifest and the arrays (as NumPy arrays), then repair the file."""
    manifest, blocks = parts(path)
    arrays = [
        np.frombuffer(block, entry["dtype"]).reshape(entry["shape"], order=entry["order"]).copy()
        for entry, block in zip(manifest["arrays"], blocks, strict=True)
    ]
    edit(manifest["root"]["state"], arrays)
    manifest["arrays"] = [
        {"dtype": a.dtype.str, "shape": list(a.shape), "order": "C", "encoding": "raw"}
        for a in arrays
    ]
    rewrite(path, manifest, [array.tobytes() for array in arrays])


def node(state: dict, *names: str) -> dict:
    for name in names:
        state = state[name]["state"] if "state" in state[name] else state[name]
    return state


def test_a_changed_file_can_still_be_right(path, data):
    change(path, lambda state, arrays: None)
    assert hetcal.load(path).predict_proba(data.X_new, y_proba=data.P_new).shape == (13, 2)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 30, 55, 56, 300, -1, -100])
def test_truncated(length, path):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(hetcal.FileFormatError, match="c.hetcal: "):
        hetcal.load(path)


def test_every_flipped_bit_is_noticed(path):
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 200):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(changed))
        with pytest.raises(hetcal.FileFormatError):
            hetcal.load(path)


def test_something_after_the_end(path):
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(hetcal.FileFormatError, match="bytes follow"):
        hetcal.load(path)


def test_a_newer_version_says_so(path):
    content = bytearray(path.read_bytes())
    content[8:12] = struct.pack("<I", 2)
    path.write_bytes(bytes(content))
    for read in (hetcal.load, describe):
        with pytest.raises(hetcal.FileFormatError, match="format version 2; this hetcal"):
            read(path)


def test_other_files_are_told_apart(tmp_path):
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr("../../etc/passwd", "x")
        archive.writestr("/absolute", "x")
    (tmp_path / "p").write_bytes(b"\x80\x04\x95cos\nsystem\n")
    (tmp_path / "t").write_text("hello")
    for name, said in (("z", "a zip archive"), ("p", "a pickle"), ("t", "does not begin as one")):
        with pytest.raises(hetcal.FileFormatError, match=said):
            hetcal.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        hetcal.load(tmp_path / "nowhere")


def test_a_bomb_is_refused_by_its_label(path):
    manifest, blocks = parts(path)
    packed = zlib.compress(bytes(1 << 26), 9)
    entry = {"dtype": "<f8", "shape": [1 << 23], "order": "C", "encoding": "zlib"}
    for entry_ in manifest["arrays"]:
        entry_["encoding"] = "raw"
    manifest["arrays"].append(entry)
    rewrite(path, manifest, [*blocks, packed])
    with pytest.raises(hetcal.FileFormatError, match="stored bytes cannot fill"):
        hetcal.load(path)
    entry["shape"] = [1]  # small by its label, and much more inside
    rewrite(path, manifest, [*blocks, packed])
    with pytest.raises(hetcal.FileFormatError, match="does not unpack to the 8 bytes"):
        hetcal.load(path)


def test_more_than_the_limit_is_refused(path):
    with pytest.raises(hetcal.FileFormatError, match="max_bytes"):
        hetcal.load(path, max_bytes=1000)


@pytest.mark.parametrize(
    "entry",
    [
        {"shape": [2**40, 2**40]},
        {"shape": [-1]},
        {"shape": [1] * 9},
        {"shape": ["3"]},
        {"shape": [True]},
        {"dtype": "|O"},
        {"dtype": "<U9"},
        {"dtype": "<c16"},
        {"encoding": "pickle"},
        {"order": "A"},
    ],
)
def test_impossible_arrays(entry, path):
    manifest, blocks = parts(path)
    for one in manifest["arrays"]:
        one["encoding"] = "raw"
    manifest["arrays"][0] |= entry
    rewrite(path, manifest, blocks)
    with pytest.raises(hetcal.FileFormatError, match="Array 0"):
        hetcal.load(path)


def _root(node, arrays=()):
    return json.dumps({"arrays": list(arrays), "root": node}).encode()


def test_text_wider_than_its_array_is_refused(path):
    rewrite(path, {}, [], text=_root({"$": "strings", "width": 2, "values": ["no", "yes"]}))
    with pytest.raises(hetcal.FileFormatError, match="impossible width"):
        hetcal.load(path)


@pytest.mark.parametrize("index", [-1, 10_000, 0.0, True, None])
def test_an_array_that_is_not_there_is_refused(path, index):
    def edit(state, arrays):
        for name in list(state):
            if isinstance(state[name], dict) and state[name].get("$") == "array":
                state[name]["index"] = index
                return
        state["random_state"] = {"$": "array", "index": index}

    change(path, edit)
    with pytest.raises(hetcal.FileFormatError, match="which is not there"):
        hetcal.load(path)


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting(depth, path):
    text = b'{"arrays":[],"root":' + b"[" * depth + b"]" * depth + b"}"
    rewrite(path, {}, [], text=text)
    with pytest.raises(hetcal.FileFormatError, match="deep|recursion"):
        hetcal.load(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"arrays":[],"arrays":[]}', "twice"),
        (b'{"arrays":[],"root":NaN}', "NaN"),
        (b"[]", "not a JSON object"),
        (b"{", "no valid JSON"),
        (b"\xff", "no valid JSON"),
        (b'{"arrays":[]}', "do not fit together"),
        (b'{"arrays":[],"root":{"$":"object","class":"os.system","state":{}}}', "os.system"),
        (b'{"arrays":[],"root":{"$":"eval"}}', "unknown kind"),
        (b'{"arrays":[],"root":1' + b"0" * 5000 + b"}", "JSON"),
    ],
)
def test_wrong_manifests(text, said, path):
    rewrite(path, {}, [], text=text)
    with pytest.raises(hetcal.FileFormatError, match=said):
        hetcal.load(path)


def forest_edit(name: str, edit):
    """Return a change of one array of the forest."""

    def change_it(state, arrays):
        forest = node(state, "similarity_", "forest_")
        edit(arrays[forest[name]["index"]], forest)

    return change_it


def put(place, value):
    def edit(array, forest):
        array[place] = value

    return edit


def wrap(offsets: np.ndarray) -> None:
    """Let offsets seem to rise: the difference of the two extremes is a small positive number."""
    largest, smallest = np.iinfo(offsets.dtype).max, np.iinfo(offsets.dtype).min
    end = offsets[-1]
    offsets[1:4] = [largest, smallest, -1]
    offsets[4:] = np.minimum(np.arange(1, len(offsets) - 3), end)
    offsets[-1] = end


ATTACKS = {
    "a child far outside": forest_edit("left", put(0, 2**31 - 1)),
    "a child before its parent": forest_edit("left", put(2, 1)),
    "a node that is its own child": forest_edit("right", put(0, 0)),
    "one child only": forest_edit("left", put(0, -1)),
    "a feature that is not there": forest_edit("feature", put(0, 1000)),
    "a negative feature": forest_edit("feature", put(0, -7)),
    "a threshold that is no number": forest_edit("threshold", put(0, np.nan)),
    "trees out of order": forest_edit("tree_offset", put(1, 0)),
    "a tree past the end": forest_edit("tree_offset", put(-1, 10**6)),
    "a leaf of another tree": lambda state, arrays: arrays[
        node(state, "similarity_")["leaves_"]["index"]
    ].fill(255),
    "a label of no class": lambda state, arrays: arrays[
        node(state, "voters_")["codes"]["index"]
    ].fill(2),
    "a negative label": lambda state, arrays: arrays[node(state, "voters_")["codes"]["index"]].fill(
        -1
    ),
    "more classes than labels": lambda state, arrays: node(state, "voters_").update(
        n_classes=10**9
    ),
    "too many features": lambda state, arrays: node(state, "space_", "encoder").update(
        n_features_in_=10**9
    ),
    "an unknown part": lambda state, arrays: state.update(predict_proba="x"),
    "an unknown fitted part": lambda state, arrays: state.update(extra_=1),
    "a part of another class": lambda state, arrays: node(state, "voters_").update(classes_=1),
    "a forest of other columns": lambda state, arrays: node(state, "similarity_", "forest_").update(
        n_features=9
    ),
    "an encoder of other columns": lambda state, arrays: node(state, "space_", "encoder").update(
        n_features_in_=5
    ),
    "offsets that wrap around": forest_edit("tree_offset", lambda array, forest: wrap(array)),
    "a list as a number": lambda state, arrays: state.update(
        zero_floor_={"$": "scalar", "dtype": "<f8", "value": [1e-3]}
    ),
    "a probability above one": lambda state, arrays: arrays[
        node(state, "scores_")["proba"]["index"]
    ].fill(1.5),
    "an infinite weight": lambda state, arrays: (
        arrays.append(np.full(120, np.inf)),
        node(state, "voters_").update(weight={"$": "array", "index": len(arrays) - 1}),
    ),
    "a class in disguise": lambda state, arrays: state.update(__class__="x"),
    "a similarity that is not fitted": lambda state, arrays: node(state, "similarity_").pop(
        "forest_"
    ),
    "no labels": lambda state, arrays: state.pop("voters_"),
    "a wrong setting": lambda state, arrays: state.update(power={"$": "float", "value": "nan"}),
    "a wrong method": lambda state, arrays: state.update(weights="other"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_no_fit_could_have_made_is_refused(attack, path):
    change(path, ATTACKS[attack])
    with pytest.raises(hetcal.FileFormatError, match="c.hetcal: "):
        hetcal.load(path)


def test_a_leaf_that_a_cast_would_make_a_child(path):
    def widen(state, arrays):
        forest = node(state, "similarity_", "forest_")
        for name in ("left", "right"):
            place = forest[name]["index"]
            wide = arrays[place].astype(np.int64)
            arrays[place] = np.where(wide < 0, 3 - 2**32, wide)

    change(path, widen)
    with pytest.raises(hetcal.FileFormatError, match="has a wrong left"):
        hetcal.load(path)


def test_fewer_items_than_leaves_say(path):
    def shorten(state, arrays):
        place = node(state, "voters_")["codes"]["index"]
        arrays[place] = arrays[place][:-1]

    change(path, shorten)
    with pytest.raises(hetcal.FileFormatError, match="voters"):
        hetcal.load(path)


TREE_ATTACKS = {
    "a column that is not there": ("column", lambda a: np.where(a == a.max(), 312, a)),
    "a negative column": ("column", lambda a: a - 1 - a.min()),
    "nodes that are missing": ("column", lambda a: a[:, :, :-1]),
    "thresholds that are missing": ("threshold", lambda a: a[:, :, :-1]),
    "a threshold that is no number": ("threshold", lambda a: a * np.nan),
    "leaves that are missing": ("value", lambda a: a[:, :, :-1]),
    "values that are no numbers": ("value", lambda a: a + np.inf),
    "a tree too few": ("value", lambda a: a[:-1]),
    "first scores for other classes": ("start", lambda a: np.append(a, 0.0)),
    "a class twice": ("classes_", lambda a: a * 0),
}


LEAFWISE_ATTACKS = {
    "a feature that is not there": ("feature", lambda a: np.where(a == a.max(), 6, a)),
    "a negative feature": ("feature", lambda a: a - 1),
    "a child in another tree": ("left", lambda a: np.where(a == a.max(), 1, a)),
    "a node that is its own child": ("left", lambda a: np.where(a == 1, 0, a)),
    "one child": ("right", lambda a: np.where(a == 2, -1, a)),
    "a child of two nodes": ("right", lambda a: np.where(a == 2, 1, a)),
    "thresholds that are missing": ("threshold", lambda a: a[:-1]),
    "a threshold that is no number": ("threshold", lambda a: a * np.nan),
    "values that are missing": ("value", lambda a: a[:-1]),
    "values that are no numbers": ("value", lambda a: a + np.inf),
    "sides that are missing": ("missing_left", lambda a: a[:-1]),
    "trees that end before they begin": ("tree_offset", lambda a: a[::-1]),
    "trees without nodes": ("tree_offset", lambda a: np.append(a, a[-1])),
    "first scores for other classes": ("baseline", lambda a: np.append(a, 0.0)),
    "a class twice": ("classes_", lambda a: a * 0),
    "a class that is not there": ("classes_", lambda a: a + 1),
}


def boosted_file(family: str, n_features: int, folder: Path) -> Path:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X, P = rng.normal(size=(60, n_features)) + y[:, None], rng.dirichlet(np.ones(2), 60)
    hybrid = hetcal.HybridCalibrator(family, n_estimators=4).fit(X, y, y_proba=P)
    hetcal.save(hybrid, folder / "c.hetcal")
    return folder / "c.hetcal"


@pytest.fixture(scope="module")
def boosted(tmp_path_factory) -> dict[str, Path]:
    widths = {"wide-boosting": 310, "boosting": 4}
    return {
        family: boosted_file(family, width, tmp_path_factory.mktemp(family))
        for family, width in widths.items()
    }


@pytest.mark.filterwarnings("ignore:The calibration set has become a training set")
@pytest.mark.parametrize(
    ("family", "attack"),
    [
        *(("wide-boosting", attack) for attack in TREE_ATTACKS),
        *(("boosting", attack) for attack in LEAFWISE_ATTACKS),
    ],
)
def test_boosted_trees_that_no_fit_could_have_made(family, attack, boosted, tmp_path):
    name, edit = (TREE_ATTACKS if family == "wide-boosting" else LEAFWISE_ATTACKS)[attack]
    path = tmp_path / "c.hetcal"
    path.write_bytes(boosted[family].read_bytes())

    def spoil(state, arrays):
        families = [family["state"] for family in state["families_"]]
        trees = next(f["fitted_"] for f in families if "fitted_" in f)["state"]
        place = trees[name]["index"]
        arrays[place] = edit(arrays[place]).astype(arrays[place].dtype)

    change(path, spoil)
    with pytest.raises(hetcal.FileFormatError, match="c.hetcal: "):
        hetcal.load(path)


def saved(calibrator, folder: Path, edit, **options) -> Path:
    """Save a calibrator and change its file."""
    hetcal.save(calibrator, folder / "c.hetcal", date=None, **options)
    change(folder / "c.hetcal", edit)
    return folder / "c.hetcal"


def array_edit(*names: str, value, at=...):
    """Return a change of values of one array; numbers among the names are places in lists."""

    def edit(state, arrays):
        for name in names:
            state = state["state"] if isinstance(state, dict) and "state" in state else state
            state = state[name]
        arrays[state["index"]][at] = value

    return edit


def set_to(name: str, value):
    return lambda state, arrays: state.update({name: value})


OUT_OF_RANGE = {
    "isotonic levels above one": ("isotonic", array_edit("levels_", 0, value=2.0, at=-1)),
    "negative isotonic levels": ("isotonic", array_edit("levels_", 1, value=-1.0, at=0)),
    "isotonic levels that are no numbers": ("isotonic", array_edit("levels_", 0, value=np.nan)),
    "isotonic thresholds that are equal": ("isotonic", array_edit("thresholds_", 0, value=0.5)),
    "infinite thresholds": ("isotonic", array_edit("thresholds_", 0, value=np.inf, at=-1)),
    "histogram levels": ("histogram", array_edit("levels_", 0, value=7.0)),
    "a slope that overflows": ("platt", array_edit("slope_", value=1e308)),
    "a negative temperature": ("temperature", set_to("inverse_temperature_", -1.0)),
    "an infinite temperature": (
        "temperature",
        set_to("inverse_temperature_", {"$": "float", "value": "inf"}),
    ),
    "a width of zero": (
        "rbf",
        lambda state, arrays: node(state, "similarity_").update(bandwidth_=0.0),
    ),
    "a floor of zero": (
        "euclidean",
        lambda state, arrays: node(state, "similarity_").update(floor_=0.0),
    ),
    "a spread of zero": ("cosine", array_edit("similarity_", "scaler_", "scale_", value=0.0)),
    "items too far away": ("euclidean", array_edit("similarity_", "Z_", value=1e200)),
    "weights above one": ("hybrid", array_edit("weights_", value=2.0)),
    "a share above one": ("hybrid", set_to("share_", 1.5)),
    "rows that are not there": ("hybrid", array_edit("calibration_rows_", value=10**6)),
    "out-of-sample probabilities": ("hybrid", array_edit("out_of_sample_proba_", value=-0.5)),
}


def _spoil_frequencies(state, arrays) -> None:
    family = next(f for f in state["families_"] if f["class"] == "ForestVoteFamily")
    arrays[family["state"]["mass_"]["state"]["values"]["index"]][:] = 3.0


OUT_OF_RANGE["a leaf's frequencies"] = ("hybrid-all", _spoil_frequencies)


@pytest.mark.parametrize("attack", OUT_OF_RANGE)
def test_numbers_out_of_their_range_are_refused(attack, calibrators, tmp_path):
    kind, edit = OUT_OF_RANGE[attack]
    path = saved(calibrators[kind], tmp_path, edit)
    with pytest.raises(hetcal.FileFormatError, match="c.hetcal: "):
        hetcal.load(path)


@pytest.fixture(scope="module")
def six_classes(data) -> dict:
    P = np.random.default_rng(0).dirichlet(np.ones(6), len(data.X))
    swc = hetcal.SimilarityCalibrator(ForestProximity(5), power=2.0)
    return {
        "near": data.fitted(swc, y=np.arange(len(data.X)) % 6, y_proba=P),
        "plain": data.fitted(
            hetcal.SimilarityCalibrator(ForestProximity(30)),
            y=np.arange(len(data.X)) % 6,
            y_proba=P,
        ),
    }


def test_leaf_sums_whose_starts_wrap_around(six_classes, tmp_path):
    def edit(state, arrays):
        wrap(arrays[node(state, "similarity_", "mass_")["indptr"]["index"]])

    path = saved(six_classes["plain"], tmp_path, edit, forget_features=True)
    with pytest.raises(hetcal.FileFormatError, match="LeafMass: indptr must rise"):
        hetcal.load(path)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("part", ["indptr", "indices"])
def test_sparse_matrices_are_checked_before_scipy_sees_them(part, dtype, data, tmp_path):
    X = sparse.csr_array(np.where(np.abs(data.X) < 1, 0.0, data.X))
    sba = hetcal.SimilarityCalibrator("euclidean", n_neighbors=5)

    def edit(state, arrays):
        matrix = node(state, "similarity_")["Z_"]
        place = matrix[part]["index"]
        arrays[place] = arrays[place].astype(dtype)
        if part == "indptr":
            wrap(arrays[place])
        else:
            arrays[place][0] = np.iinfo(dtype).min

    path = saved(data.fitted(sba, X=X), tmp_path, edit)
    with pytest.raises(hetcal.FileFormatError, match="sparse matrix"):
        hetcal.load(path)


def peak_of_refused(path: Path, max_bytes: int) -> int:
    """Return the most memory that a file took until it was refused for it."""
    tracemalloc.start()
    try:
        with pytest.raises(hetcal.FileFormatError, match="max_bytes|objects"):
            hetcal.load(path, max_bytes=max_bytes)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


TEXTS = {"$": "strings", "width": 1 << 22, "values": [""]}
EMPTY_TABLE = {"$": "table", "columns": [], "index": None, "index_name": None}
SWELLING = {
    "texts": [TEXTS] * 20,
    "a text with many places": {"$": "strings", "width": 1000, "values": [""] * 20_000},
    "values": [[]] * 200_000,
    "tables": [EMPTY_TABLE] * 25_000,
}


@pytest.mark.parametrize("what", SWELLING)
def test_a_small_file_cannot_take_much_memory(what, calibrators, tmp_path):
    path = saved(calibrators["platt"], tmp_path, set_to("classes", SWELLING[what]))
    assert peak_of_refused(path, 10_000_000) < 60_000_000


def test_the_same_array_is_paid_for_whenever_it_is_used(path):
    def repeat(state, arrays):
        state["similarity"] = [state["similarity_"]] * 500

    change(path, repeat)
    assert peak_of_refused(path, 2_000_000) < 20_000_000


def test_classes_times_trees_are_paid_for(six_classes, tmp_path):
    T = 200_000

    def many_trees(state, arrays):
        forest = node(state, "similarity_", "forest_")
        for name, fill, dtype in (
            ("feature", -2, np.int32),
            ("threshold", 0.0, np.float64),
            ("left", -1, np.int32),
            ("right", -1, np.int32),
            ("missing_left", 0, np.uint8),
        ):
            arrays[forest[name]["index"]] = np.full(T, fill, dtype)
        arrays[forest["tree_offset"]["index"]] = np.arange(T + 1)
        forest["in_bag"] = None
        arrays[node(state, "similarity_")["leaves_"]["index"]] = np.zeros((120, T), np.uint8)

    path = saved(six_classes["near"], tmp_path, many_trees)
    enough = (120 * 9 + 29 + 48 + 100) * T  # leaves, nodes; not the counts by class
    assert peak_of_refused(path, enough) < enough + 200_000_000


@pytest.mark.parametrize("stored", [4096, -4096, 10**9, "all"])
def test_the_number_of_threads_is_not_read_from_a_file(stored, path):
    change(path, lambda state, arrays: node(state, "similarity_").update(n_jobs=stored))
    assert hetcal.load(path).similarity_.n_jobs is None


def test_the_number_of_threads_is_not_written(data, tmp_path):
    for name, jobs in (("one", 1), ("two", 2)):
        swc = data.fitted(hetcal.SimilarityCalibrator(ForestProximity(3, n_jobs=jobs), n_jobs=jobs))
        hetcal.save(swc, tmp_path / name, date=None)
    roots = [parts(tmp_path / name)[0]["root"] for name in ("one", "two")]
    assert roots[0] == roots[1]
    assert "n_jobs" not in json.dumps(roots)


@pytest.mark.parametrize("depth", [98, 99, 5000])
def test_deep_metadata(depth, path):
    manifest, blocks = parts(path)
    for entry in manifest["arrays"]:
        entry["encoding"] = "raw"
    manifest["metadata"] = {"deep": "MARK"}
    rewrite(path, manifest, blocks)  # puts the sizes right
    text = json.dumps(manifest).replace('"MARK"', "[" * depth + "]" * depth).encode()
    rewrite(path, manifest, blocks, text=text)
    for read in (hetcal.load, describe):
        if depth == 98:  # within the manifest and the metadata
            read(path)
            continue
        with pytest.raises(hetcal.FileFormatError, match="deep|recursion"):
            read(path)


@pytest.fixture(scope="module")
def monitored(calibrators, data):
    monitor = hetcal.SupportMonitor(calibrators["swc"]).fit(data.X, y_proba=data.P)
    monitor.update(data.X_new, y_proba=data.P_new, y=data.y_new)
    return monitor


HISTORIES = {
    "a time that pandas cannot hold": array_edit("history_", value=1e10, at=(0, 0)),
    "a time long ago": array_edit("history_", value=-1e10, at=(0, 0)),
    "half an item": array_edit("history_", value=0.5, at=(0, 2)),
    "more items than numbers can count": array_edit("history_", value=1e17, at=(0, 1)),
    "no time": array_edit("history_", value=np.nan, at=(0, 0)),
    "more flags than items": lambda state, arrays: node(state, "stream_").update(n_flagged=10**6),
    "two counts in one place": lambda state, arrays: node(state, "stream_").update(
        past=node(state, "stream_")["base"]
    ),
}


@pytest.mark.parametrize("attack", HISTORIES)
def test_histories_that_nobody_has_lived_through(attack, monitored, tmp_path):
    path = saved(monitored, tmp_path, HISTORIES[attack])
    with pytest.raises(hetcal.FileFormatError, match="c.hetcal: "):
        hetcal.load(path)


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="limits memory as Unix does")
def test_mutations_are_refused_or_work(monitored, tmp_path):
    """The everyday part of ``benchmarks/fuzz_load.py --mutations 20000``."""
    for golden in GOLDEN.glob("*.hetcal"):
        if "swc-hh" not in golden.name:  # their predictions grow forests
            (tmp_path / golden.name).write_bytes(golden.read_bytes())
    hetcal.save(monitored, tmp_path / "monitor.hetcal")
    done = subprocess.run(
        [
            *(sys.executable, str(FUZZ), "--samples", str(tmp_path)),
            *("--mutations", "80", "--first", "1000000"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "80 mutations" in done.stdout


@pytest.mark.parametrize("part", ["made", "calibrator", "metadata"])
@pytest.mark.parametrize("value", [7, ["table", "fit"], None])
def test_a_description_that_is_no_mapping(path, part, value):
    manifest, blocks = parts(path)
    rewrite(path, manifest | {part: value}, blocks)
    with pytest.raises(hetcal.FileFormatError, match="the description is incomplete"):
        describe(path)
