"""Damaged, lying and attacking files: one exception, a clear text, little time and memory."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import hetcal
from hetcal.io import describe
from hetcal.similarity import ForestProximity

HEADER = struct.Struct("<8sIIQ32s")
FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz_load.py"


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
        np.frombuffer(block, entry["dtype"]).reshape(entry["shape"]).copy()
        for entry, block in zip(manifest["arrays"], blocks, strict=True)
    ]
    edit(manifest["root"]["state"], arrays)
    for entry, array in zip(manifest["arrays"], arrays, strict=True):
        entry |= {"dtype": array.dtype.str, "shape": list(array.shape), "encoding": "raw"}
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
    "too many threads": lambda state, arrays: node(state, "similarity_").update(n_jobs=10**9),
    "an unknown part": lambda state, arrays: state.update(predict_proba="x"),
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


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X, P = rng.normal(size=(60, 310)) + y[:, None], rng.dirichlet(np.ones(2), 60)
    hybrid = hetcal.HybridCalibrator("wide-boosting", n_estimators=4).fit(X, y, y_proba=P)
    path = tmp_path_factory.mktemp("wide") / "c.hetcal"
    hetcal.save(hybrid, path)
    return path


@pytest.mark.filterwarnings("ignore:The calibration set has become a training set")
@pytest.mark.parametrize("attack", TREE_ATTACKS)
def test_complete_trees_that_no_fit_could_have_made(attack, wide, tmp_path):
    name, edit = TREE_ATTACKS[attack]
    path = tmp_path / "c.hetcal"
    path.write_bytes(wide.read_bytes())

    def spoil(state, arrays):
        families = [family["state"] for family in state["families_"]]
        trees = next(f["fitted_"] for f in families if "fitted_" in f)["state"]
        place = trees[name]["index"]
        arrays[place] = edit(arrays[place]).astype(arrays[place].dtype)

    change(path, spoil)
    with pytest.raises(hetcal.FileFormatError, match="c.hetcal: "):
        hetcal.load(path)


@pytest.mark.skipif(sys.platform == "win32", reason="limits memory as Unix does")
def test_mutations_are_refused_or_work():
    """The everyday part of ``benchmarks/fuzz_load.py --mutations 10000``."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(FUZZ), "--mutations", "150", "--first", "1000000"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "150 mutations" in done.stdout
    assert time.perf_counter() - started < 600
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != 3 << 30  # only the child was limited
