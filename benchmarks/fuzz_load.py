"""Load damaged and hostile files: each must be refused, or give a calibrator that works.

Every mutation starts from a file that ``hetcal.save`` wrote, one of every kind. Some flip bits, cut
or splice the bytes as they are; most take the file apart, change its tree or its arrays, and put it
together again with right checksums, so that the wrong content reaches the checks behind them. A
file counts as

- refused: ``hetcal.load`` raised ``FileFormatError``;
- loaded: predictions are probabilities, and everything else that the calibrator or the monitor
  offers returns, or says in a ``ValueError`` why it cannot.

Anything else is a failure, and the exit status is 1: another exception, a crash, a process that
does not return, more memory than ``max_bytes`` and 200 MB beside it. Files are loaded in a process
of its own; one that crashes or hangs is noted and replaced.

    python benchmarks/fuzz_load.py --mutations 20000
    python benchmarks/fuzz_load.py --mutations 1 --first 4711   # one of them again
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import hashlib
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MAX_BYTES = 64 << 20
SPARE_BYTES = 200_000_000
# Sanitizers reserve terabytes of addresses, keep freed memory, and are slow.
SANITIZED = "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ
MEMORY = 3 << 30
SECONDS = 200 if SANITIZED else 20
HEADER = struct.Struct("<8sIIQ32s")
EDGES = [0, 1, -1, 2, 127, -128, 255, 2**15, 2**16 - 1, 2**31 - 1, -(2**31), 2**32 - 1, 2**53]
EDGES += [2**62, 2**63 - 1, -(2**63), 2**64 - 1]
ODD_VALUES = [
    None,
    True,
    False,
    *EDGES,
    10**30,
    0.5,
    -1.0,
    1e308,
    -1e308,
    5e-324,
    1e-200,
    1e150,
    "",
    "x",
    "forest",
    "out-of-bag",
    "logits",
    [],
    [[]],
    {},
    {"$": "float", "value": "nan"},
    {"$": "float", "value": "inf"},
    {"$": "float", "value": "-inf"},
    {"$": "scalar", "dtype": "|i1", "value": 300},
    {"$": "scalar", "dtype": "<f8", "value": [1.0]},
    {"$": "array", "index": 0},
    {"$": "array", "index": 10**9},
    {"$": "tuple", "items": []},
    {"$": "dict", "items": []},
    {"$": "dict", "items": [["a", 1], ["a", 2]]},
    {"$": "table", "columns": [["a", [1]], ["b", [[2]]]], "index": [[1]], "index_name": None},
    {"$": "object", "class": "Popen", "state": {}},
    {"$": "object", "class": "Forest", "state": {}},
    {"$": "object", "class": "Uncalibrated", "state": {}},
    {"$": "sparse", "shape": [2**40, 2**40], "data": [], "indices": [], "indptr": []},
]
ODD_FLOATS = [np.nan, np.inf, -np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 1e-320, 1e-200, 1e99, 1e200]
ODD_FLOATS += [1e308, -1e308]
DTYPES = ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "|O", "<U3"]
NUMERIC = DTYPES[:-2]


def samples(folder: Path) -> None:
    """Save one tiny calibrator of every kind, and monitors with a history."""
    import hetcal
    from hetcal.calibration import get_calibrator, list_calibrators
    from hetcal.datasets import make_hidden_heterogeneity

    warnings.simplefilter("ignore")  # about calibration sets of sixty items
    data = make_hidden_heterogeneity(60, heterogeneity=1.0, random_state=0)
    large = ("swc", "swc-hh", "hybrid")
    made = {name: get_calibrator(name) for name in list_calibrators() if name not in large}
    for name, calibrator in (made | _small_ones(hetcal)).items():
        calibrator.fit(data.X, data.y, y_proba=data.y_proba)
        if name == "hybrid-all":  # every expert has a say, and so its place in the file
            calibrator.share_ = 1.0
            calibrator.weights_[:] = 1 / len(calibrator.weights_)
        hetcal.save(calibrator, folder / f"{name}.hetcal", date=None)
    for name, (calibrator, forget) in _odd_ones(hetcal, data).items():
        hetcal.save(calibrator, folder / f"{name}.hetcal", forget_features=forget, date=None)


def _small_ones(hetcal: Any) -> dict[str, Any]:
    from hetcal.calibration import get_calibrator
    from hetcal.similarity import CombinedSimilarity, ForestProximity, RBFSimilarity

    similar, hidden = hetcal.SimilarityCalibrator, hetcal.HiddenHeterogeneity
    few = {"n_null": 3, "radius": 0.3, "n_estimators": 5}
    return {
        "platt-paper": get_calibrator("platt", preset="paper"),
        "histogram-paper": get_calibrator("histogram", preset="paper"),
        "swc": similar(ForestProximity(6)),
        "swc-oob": similar(ForestProximity(6, voters="out-of-bag")),
        "isolation": similar("isolation", n_neighbors=9, power=3.0),
        "cosine": similar("cosine"),
        "rbf": similar("rbf"),
        "combined": similar(CombinedSimilarity(ForestProximity(4), RBFSimilarity())),
        "swc-hh": similar(ForestProximity(4), heterogeneity=hidden(**few)),
        "swc-hh-item": similar(
            ForestProximity(4), heterogeneity=hidden(neighborhoods="item", **few)
        ),
        "hybrid": hetcal.HybridCalibrator(n_estimators=4),
        "hybrid-all": hetcal.HybridCalibrator(n_estimators=4),
        "hybrid-of-calibrators": hetcal.HybridCalibrator(
            ["isotonic", similar(ForestProximity(4)), "proximity"], n_estimators=4
        ),
        "preserving": hetcal.LabelPreserving(similar(ForestProximity(4))),
    }


def _odd_ones(hetcal: Any, data: Any) -> dict[str, tuple[Any, bool]]:
    """Return what other data makes: tables, sparse features, many classes, groups, monitors."""
    import pandas as pd
    from scipy import sparse

    from hetcal.similarity import EuclideanSimilarity, ForestProximity

    similar, rng = hetcal.SimilarityCalibrator, np.random.default_rng(0)
    X, y, P = data.X, data.y, data.y_proba
    table = pd.DataFrame(X[:, :2], columns=["a", "b"])
    table["colour"] = np.where(X[:, 0] > 0, "red", "blue")
    by_table = similar(ForestProximity(6)).fit(table, y, y_proba=P)
    zeros = np.where(np.abs(X) < 1, 0.0, X)
    six, P6 = np.arange(60) % 6, rng.dirichlet(np.ones(6), 60)
    wide = rng.normal(size=(60, 310)) + y[:, None]
    swc = similar(ForestProximity(6)).fit(X, y, y_proba=P)
    hybrid = hetcal.HybridCalibrator("proximity", n_estimators=4).fit(X, y, y_proba=P)
    columns = hetcal.LocallyCalibratedClassifier(
        hetcal.PrecomputedProba([0, 1]), similar(ForestProximity(4))
    ).fit(np.hstack([P, X]), y)
    return {
        "table": (by_table, False),
        "forgotten": (by_table, True),
        "logits": (similar(ForestProximity(4)).fit(X, y, logits=np.log(P + 1e-9)), False),
        "grouped": (
            similar(ForestProximity(4)).fit(
                X, y, y_proba=P, groups=np.arange(60) // 2, sample_weight=rng.random(60)
            ),
            False,
        ),
        "sparse": (
            similar(EuclideanSimilarity(), n_neighbors=7).fit(
                sparse.csr_array(zeros), y, y_proba=P
            ),
            False,
        ),
        "precomputed": (
            similar("precomputed", augment=None).fit(
                np.exp(-((X[:, :1] - X[:, 0]) ** 2)), y, y_proba=P
            ),
            False,
        ),
        "classes": (similar(ForestProximity(4)).fit(X, six, y_proba=P6), False),
        "classes-near": (similar(ForestProximity(4), power=2.0).fit(X, six, y_proba=P6), False),
        "classes-forgotten": (similar(ForestProximity(4)).fit(X, six, y_proba=P6), True),
        "classes-isotonic": (hetcal.IsotonicCalibration().fit(None, six, y_proba=P6), False),
        "classes-hybrid": (hetcal.HybridCalibrator(n_estimators=3).fit(X, six, y_proba=P6), False),
        "wide": (
            hetcal.HybridCalibrator("wide-boosting", n_estimators=3).fit(wide, y, y_proba=P),
            False,
        ),
        "columns": (columns, False),
        "monitor": (_monitored(hetcal, swc, data, "nearest"), False),
        "monitor-isolation": (_monitored(hetcal, swc, data, "isolation"), True),
        "monitor-hybrid": (_monitored(hetcal, hybrid, data, "nearest"), False),
    }


def _monitored(hetcal: Any, calibrator: Any, data: Any, distance: str) -> Any:
    half = ["north", "south"] * 30
    monitor = hetcal.SupportMonitor(calibrator, distance=distance, window=10, horizon=500)
    monitor.fit(data.X, y_proba=data.y_proba, by=half)
    monitor.update(data.X, y_proba=data.y_proba, y=data.y, by=half)
    monitor.update(data.X + 9.0, y_proba=data.y_proba, by=half)
    return monitor


# -- taking files apart and putting them together ------------------------------------------------


def parts(content: bytes) -> tuple[dict, list[bytes]]:
    """Return the manifest and the unpacked arrays."""
    length = HEADER.unpack(content[: HEADER.size])[3]
    start = HEADER.size + length
    manifest = json.loads(content[HEADER.size : start])
    arrays = []
    for entry in manifest["arrays"]:
        block = content[start : start + entry["bytes"]]
        arrays.append(zlib.decompress(block) if entry["encoding"] == "zlib" else block)
        start += entry["bytes"]
    return manifest, arrays


def joined(manifest: dict, arrays: list[bytes]) -> bytes:
    """Return a file with right sizes and checksums, whatever it holds."""
    blocks = []
    for entry, raw in zip(manifest.get("arrays", []), arrays, strict=False):
        block = zlib.compress(raw, 1) if entry.get("encoding") == "zlib" else raw
        entry["bytes"] = len(block)
        entry["sha256"] = hashlib.sha256(block).hexdigest()
        blocks.append(block)
    text = json.dumps(manifest).encode()
    head = HEADER.pack(b"\x89HETCAL\n", 1, 0, len(text), hashlib.sha256(text).digest())
    return head + text + b"".join(blocks)


# -- mutations -----------------------------------------------------------------------------------


def flip_bits(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def splice(content: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(content)) for _ in range(2))
    at = rng.randrange(len(content))
    piece = content[start : min(end, start + 512)]
    if rng.random() < 0.5:
        return content[:at] + piece + content[at:]
    return content[:at] + content[at + len(piece) :]


def change_header(content: bytes, rng: random.Random) -> bytes:
    head = list(HEADER.unpack(content[: HEADER.size]))
    place = rng.choice([1, 2, 3])
    head[place] = rng.choice([0, 1, 2, 99, 2**31, 2**32 - 1, head[3] + 1, head[3] - 1])
    return HEADER.pack(*head) + content[HEADER.size :]


def places_of(node: object) -> list:
    """Return every (container, key) of a JSON tree."""
    found, waiting = [], [node]
    while waiting:
        inner = waiting.pop()
        pairs = inner.items() if isinstance(inner, dict) else enumerate(inner)
        for key, value in pairs:
            found.append((inner, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    return found


Tree = dict[str, Any]
Arrays = list[np.ndarray]


def unpacked(content: bytes) -> tuple[Tree, Arrays]:
    """Return the manifest and the arrays, all of them as they were saved."""
    manifest, blocks = parts(content)
    return manifest, [
        np.frombuffer(block, entry["dtype"]).reshape(entry["shape"], order=entry["order"]).copy()
        for entry, block in zip(manifest["arrays"], blocks, strict=True)
    ]


def packed(manifest: Tree, arrays: Arrays) -> bytes:
    """Return a file with a right table and right checksums."""
    manifest["arrays"] = [
        {
            "dtype": array.dtype.newbyteorder("<").str,
            "shape": list(array.shape),
            "order": "C",
            "encoding": "raw",
        }
        for array in arrays
    ]
    return joined(manifest, [array.tobytes() for array in arrays])


def change_tree(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Replace, remove, copy and shift values of the tree."""
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        found = places_of(manifest["root"])
        if not found:
            break
        container, key = rng.choice(found)
        kind = rng.randrange(5)
        if kind <= 1:
            container[key] = copy.deepcopy(rng.choice(ODD_VALUES))
        elif kind == 2:
            del container[key]
        elif kind == 3:
            other, place = rng.choice(found)
            container[key] = copy.deepcopy(other[place])
        elif isinstance(container[key], int | float):
            container[key] = rng.choice([container[key] + 1, -container[key], container[key] * 2])


def change_number(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Put a number of the tree to an edge of a type, or out of its range."""
    found = [
        (container, key)
        for container, key in places_of(manifest["root"])
        if isinstance(container[key], int | float)
    ]
    for container, key in rng.sample(found, min(len(found), rng.choice([1, 1, 2]))):
        odd = [value for value in ODD_VALUES if isinstance(value, int | float)]
        container[key] = rng.choice([*odd, {"$": "float", "value": "nan"}])


def swap_nodes(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Let two parts of the tree change places."""
    found = places_of(manifest["root"])
    nested = [place for place in found if isinstance(place[0][place[1]], dict | list)]
    if len(nested) > 1:
        (one, i), (two, j) = rng.sample(nested, 2)
        one[i], two[j] = copy.deepcopy(two[j]), copy.deepcopy(one[i])


def change_state(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Cut an attribute of an object, name it anew, add one, or take another object's."""
    states = [
        container[key]["state"]
        for container, key in places_of(manifest)
        if isinstance(container[key], dict) and isinstance(container[key].get("state"), dict)
    ]
    state, other = rng.choice(states), rng.choice(states)
    if not state or not other:
        return
    name = rng.choice(sorted(state))
    kind = rng.randrange(4)
    if kind == 0:
        del state[name]
    elif kind == 1:
        new = rng.choice(["_x", "predict_proba", "__class__", "extra_", "n_jobs", name + "_"])
        state[new] = copy.deepcopy(state[name])
    elif kind == 2:
        state[name] = copy.deepcopy(other[rng.choice(sorted(other))])
    else:
        new = rng.choice(sorted(other))
        state[new] = copy.deepcopy(other[new])


def add_strings(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Put arrays of text of any size anywhere, once or many times over."""
    container, key = rng.choice(places_of(manifest["root"]))
    node = {
        "$": "strings",
        "width": rng.choice([0, 1, 1000, 1 << 20, 1 << 24, 1 << 40, -1]),
        "values": rng.choice([[], [""], ["a", "b"], ["a"] * 1000, ["a", 1]]),
    }
    copies = rng.choice([1, 1, 60, 2000])
    container[key] = node if copies == 1 else [node] * copies


def repeat_node(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Repeat a part of the tree many times."""
    found = places_of(manifest["root"])
    container, key = rng.choice(found)
    copies = rng.choice([2, 30, 300])
    if len(json.dumps(container[key])) * copies < 1 << 22:
        container[key] = [container[key]] * copies


def edge_integers(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Put integers to the edges of their type, also so that differences wrap around."""
    whole = [array for array in arrays if array.dtype.kind in "iu" and array.size]
    if not whole:
        return
    array = rng.choice(whole).reshape(-1)
    info = np.iinfo(array.dtype)
    edges = [v for v in (*EDGES, info.min, info.max) if info.min <= v <= info.max]
    if rng.random() < 0.3 and len(array) > 5 and info.min < 0:
        end = array[-1]
        array[1:4] = [info.max, info.min, -1]
        array[4:] = rng.choice([end, np.arange(1, len(array) - 3).astype(array.dtype)])
        array[-1] = end
        return
    for _ in range(rng.choice([1, 1, 3, len(array)])):
        array[rng.choice([0, -1, rng.randrange(len(array))])] = rng.choice(edges)


def odd_floats(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Put numbers out of their range, one of them or all."""
    numbers = [array for array in arrays if array.dtype.kind == "f" and array.size]
    if not numbers:
        return
    with np.errstate(all="ignore"):
        array = rng.choice(numbers).reshape(-1)
        odd = rng.choice(ODD_FLOATS)
        kind = rng.randrange(5)
        if kind == 0:
            array[:] = odd
        elif kind == 1:
            array *= odd
        elif kind == 2:
            array += odd
        else:
            for _ in range(rng.choice([1, 1, 3, len(array)])):
                array[rng.randrange(len(array))] = rng.choice(ODD_FLOATS)


def shuffle_array(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Give the values of an array another order."""
    if arrays:
        np.random.default_rng(rng.randrange(2**32)).shuffle(rng.choice(arrays).reshape(-1))


def resize_arrays(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Let arrays shrink and grow against each other."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        if not arrays:
            return
        i = rng.randrange(len(arrays))
        axis = rng.randrange(arrays[i].ndim)
        n = arrays[i].shape[axis]
        size = rng.choice([0, 1, max(n - 1, 0), n + 1, n // 2, 2 * n])
        arrays[i] = np.resize(
            np.moveaxis(arrays[i], axis, 0), (size, *np.delete(arrays[i].shape, axis))
        )
        arrays[i] = np.ascontiguousarray(np.moveaxis(arrays[i], 0, axis))


def reshape_array(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Give an array other dimensions with the same number of values."""
    if not arrays:
        return
    i = rng.randrange(len(arrays))
    size = arrays[i].size
    shapes = [(size,), (1, size), (size, 1), arrays[i].shape[::-1], (1, 1, size)]
    arrays[i] = np.ascontiguousarray(arrays[i].reshape(rng.choice(shapes)))


def swap_dtype(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Store the same numbers, or the same bytes, as another type."""
    if not arrays:
        return
    i, dtype = rng.randrange(len(arrays)), np.dtype(rng.choice(NUMERIC))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rng.random() < 0.7 or dtype.itemsize != arrays[i].dtype.itemsize:
            arrays[i] = arrays[i].astype(dtype)
        elif dtype != np.bool_:
            arrays[i] = arrays[i].view(dtype)


def swap_arrays(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Let two arrays change places, or be one and the same."""
    if len(arrays) > 1:
        i, j = rng.sample(range(len(arrays)), 2)
        arrays[i], arrays[j] = arrays[j], arrays[i] if rng.random() < 0.5 else arrays[j]


def graft(manifest: Tree, arrays: Arrays, rng: random.Random, other: bytes) -> None:
    """Put a part of another file in the place of a part of this one."""
    theirs, more = unpacked(other)
    found, foreign = places_of(manifest["root"]), places_of(theirs["root"])
    objects = [place for place in foreign if isinstance(place[0][place[1]], dict)]
    if not objects:
        return
    source, name = rng.choice(objects)
    part = copy.deepcopy(source[name])
    for node, key in places_of([part]):
        if isinstance(node[key], dict) and node[key].get("$") == "array":
            node[key]["index"] = int(node[key]["index"]) + len(arrays)
    same = [
        (container, key)
        for container, key in found
        if isinstance(container[key], dict) and container[key].get("$") == part.get("$")
    ]
    container, key = rng.choice(same or found)
    container[key] = part
    arrays.extend(more)


def change_notes(manifest: Tree, arrays: Arrays, rng: random.Random) -> None:
    """Change what people read: the summary and the notes."""
    manifest["metadata"] = {"notes": copy.deepcopy(rng.choice(ODD_VALUES))}
    container, key = rng.choice(places_of(manifest["calibrator"]))
    container[key] = copy.deepcopy(rng.choice(ODD_VALUES))


def nest(content: bytes, rng: random.Random) -> bytes:
    """Put something very deep into the tree, or into the notes."""
    manifest, arrays = parts(content)
    container, key = rng.choice(places_of(manifest["root"]))
    if rng.random() < 0.3:
        container, key = manifest["metadata"], "deep"
    container[key] = "MARK"
    depth = rng.choice([30, 90, 900, 100_000])
    start, end = rng.choice([(b"[", b"]"), (b'{"a":', b"}")])
    file = joined(manifest, arrays)
    length = HEADER.unpack(file[: HEADER.size])[3]
    text = file[HEADER.size : HEADER.size + length]
    return with_manifest(
        text.replace(b'"MARK"', start * depth + b"0" + end * depth), file[HEADER.size + length :]
    )


def change_table(content: bytes, rng: random.Random) -> bytes:
    """Let the table of arrays say something else than what is stored."""
    manifest, arrays = parts(content)
    table = manifest["arrays"]
    if not table:
        return change_header(content, rng)
    file = joined(manifest, arrays)
    entry = rng.choice(table)
    name = rng.choice(["dtype", "shape", "order", "encoding", "bytes", "sha256"])
    huge = [[2**40, 2**40], [2**47], [10**9], [0], [0, 2**47], [-1], 5 * [1]]
    entry[name] = {
        "dtype": rng.choice(DTYPES),
        "shape": rng.choice([*huge, entry["shape"][::-1], [1, *entry["shape"]]]),
        "order": rng.choice(["C", "F", "K", None]),
        "encoding": rng.choice(["raw", "zlib", "lzma"]),
        "bytes": rng.choice([0, entry["bytes"] + 1, 2**62, -5]),
        "sha256": "0" * 64,
    }[name]
    length = HEADER.unpack(file[: HEADER.size])[3]
    return with_manifest(json.dumps(manifest).encode(), file[HEADER.size + length :])


def with_manifest(text: bytes, rest: bytes) -> bytes:
    """Return a file with this manifest and its right checksum."""
    head = HEADER.pack(b"\x89HETCAL\n", 1, 0, len(text), hashlib.sha256(text).digest())
    return head + text + rest


def bomb(content: bytes, rng: random.Random) -> bytes:
    """Unpack to far more than the file's size."""
    manifest, arrays = parts(content)
    size = rng.choice([1 << 20, 1 << 24, 1 << 27])
    entry = {"dtype": "<f8", "shape": [size // 8], "order": "C", "encoding": "zlib"}
    if rng.random() < 0.5:
        entry["shape"] = [1]
    manifest["arrays"].append(entry)
    return joined(manifest, [*arrays, bytes(size)])


ON_BYTES: list[Callable] = [flip_bits, cut, splice, change_header, change_table, nest]
ON_PARTS: list[Callable] = [
    *(change_tree, change_tree, change_number, swap_nodes, change_state, add_strings, repeat_node),
    *(edge_integers, edge_integers, odd_floats, odd_floats, shuffle_array, resize_arrays),
    *(resize_arrays, reshape_array, swap_dtype, swap_arrays, change_notes),
]


def mutated(contents: list[bytes], seed: int) -> tuple[str, bytes]:
    """Return the name of a mutation, and the file it gives."""
    rng = random.Random(seed)
    content = rng.choice(contents)
    kind = rng.random()
    if kind < 0.01:
        return "bomb", bomb(content, rng)
    if kind < 0.15:
        mutation = rng.choice(ON_BYTES)
        return mutation.__name__, mutation(content, rng)
    manifest, arrays = unpacked(content)
    if kind < 0.22:
        graft(manifest, arrays, rng, rng.choice(contents))
        return "graft", packed(manifest, arrays)
    chosen = rng.sample(ON_PARTS, rng.choice([1, 1, 1, 2, 3]))
    for mutation in chosen:
        with contextlib.suppress(IndexError):  # an earlier one has left nothing to choose from
            mutation(manifest, arrays, rng)
    return chosen[0].__name__, packed(manifest, arrays)


# -- the process that loads ----------------------------------------------------------------------


def outcome(path: Path, seed: int) -> str:
    """Load one file and use it."""
    import hetcal

    try:
        loaded = hetcal.load(path, max_bytes=MAX_BYTES)
    except hetcal.FileFormatError:
        return "refused"
    rng = np.random.default_rng(seed)
    if isinstance(loaded, hetcal.SupportMonitor):
        return used_monitor(loaded, rng)
    if isinstance(loaded, hetcal.LocallyCalibratedClassifier):
        return used_classifier(loaded, rng)
    return used_calibrator(loaded, rng)


def some_items(calibrator: Any, rng: np.random.Generator) -> tuple[Any, dict[str, np.ndarray]]:
    """Return features and a classifier's output: ordinary ones, far ones, and certain ones."""
    from hetcal.persistence.smoke_check import encoder_of, made_up_features

    n, K = 11, len(calibrator.classes_)
    X = made_up_features(encoder_of(calibrator), n)
    if isinstance(X, np.ndarray):
        X = np.abs(X + rng.normal(size=X.shape) * 10.0 ** rng.integers(-3, 9, (n, 1)))
    P = rng.dirichlet(np.full(K, 0.3), n)
    P[0], P[1], P[2] = np.eye(K)[0], np.eye(K)[-1], 1 / K
    if calibrator.input_kind_ == "y_proba":
        return X, {"y_proba": P}
    return X, {"logits": rng.normal(size=P.shape) * 10.0 ** rng.integers(-3, 3, (n, 1))}


def odd_probabilities(calibrator: Any, Q: Any, n: int) -> str | None:
    """Return what is wrong with probabilities."""
    if not isinstance(Q, np.ndarray) or Q.shape != (n, len(calibrator.classes_)):
        return f"failed: shape {np.shape(Q)}"
    if not np.isfinite(Q).all():
        return "failed: a probability that is no number"
    if Q.min() < 0 or Q.max() > 1 + 1e-9:
        return f"failed: probabilities from {Q.min()} to {Q.max()}"
    inner = getattr(calibrator, "calibrator_", calibrator)
    scaled = getattr(inner, "normalize", True)  # histogram binning as published does not
    if scaled and not np.allclose(Q.sum(axis=1), 1, atol=1e-6):
        return f"failed: a row of probabilities sums to {Q.sum(axis=1)}"
    return None


def used_calibrator(calibrator: Any, rng: np.random.Generator) -> str:
    X, output = some_items(calibrator, rng)
    wrong = odd_probabilities(calibrator, calibrator.predict_proba(X, **output), 11)
    if wrong is not None:
        return wrong
    intervals = ("predict_interval", "predict_smoothed_interval", "predict_venn_abers_pair")
    for name in ("predict", "evidence", "effective_sample_size", *intervals, "support"):
        method = getattr(calibrator, name, None)
        said = None if method is None else attempt(method, X, **output)
        if name == "support" and isinstance(said, np.ndarray) and not (said >= 0).all():
            return f"failed: support {said}"
    attempt(lambda: getattr(calibrator, "out_of_sample_proba_", None))
    if hasattr(calibrator, "out_of_sample_support"):
        attempt(calibrator.out_of_sample_support)
    return saved_again(calibrator)


def used_classifier(classifier: Any, rng: np.random.Generator) -> str:
    reader = classifier.estimator_
    X = rng.normal(size=(11, reader.n_features_in_))
    if reader.kind == "proba":
        X[:, reader.columns_] = 1 / len(classifier.classes_)
    return odd_probabilities(classifier, classifier.predict_proba(X), 11) or "loaded"


def used_monitor(monitor: Any, rng: np.random.Generator) -> str:
    X, output = some_items(monitor.calibrator_, rng)
    wrong = odd_probabilities(
        monitor.calibrator_, monitor.calibrator_.predict_proba(X, **output), 11
    )
    if wrong is not None:
        return wrong
    y = monitor.classes_[np.arange(11) % len(monitor.classes_)]
    items = monitor.update(X, **output, y=y, by=["north"] * 11)
    for name in items.columns.intersection(["p", "p_support", "p_distance"]):
        if not items[name].between(0, 1).all():
            return f"failed: {name} {items[name].tolist()}"
    monitor.frame()
    monitor.groups()
    monitor.to_json()
    monitor.reset().update(X, **output)
    return saved_again(monitor)


def attempt(method: Callable, *items: Any, **options: Any) -> Any:
    """Call; what is not available may say so."""
    try:
        return method(*items, **options)
    except ValueError:
        return None


def saved_again(calibrator: Any) -> str:
    import hetcal

    with tempfile.TemporaryDirectory() as folder:
        hetcal.save(calibrator, f"{folder}/again.hetcal")
        hetcal.load(f"{folder}/again.hetcal")
    return "loaded"


def resident(name: str) -> int:
    """Return VmRSS (now) or VmHWM (at most) of this process in bytes; 0 where that is unknown."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def start_anew() -> int:
    """Let the system count the most memory from now on; return what is in use."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def work(folder: Path, first: int, last: int) -> None:
    """Load the mutations of a range of seeds, one line of JSON each."""
    import signal

    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    contents = [path.read_bytes() for path in sorted(folder.glob("*.hetcal"))]
    path = folder / f"mutated-{os.getpid()}"
    for content in contents:  # what is imported or computed once counts for no file
        path.write_bytes(content)
        result = outcome(path, 0)
        if result != "loaded":
            raise RuntimeError(f"A file that nobody has changed: {result}")
    for seed in range(first, last):
        name, content = mutated(contents, seed)
        path.write_bytes(content)
        print(json.dumps({"seed": seed, "mutation": name}), flush=True)
        signal.alarm(6 * SECONDS)  # its default action ends the process
        started, before = time.process_time(), start_anew()
        try:
            result = outcome(path, seed)
        except Exception as error:
            result = f"failed: {type(error).__name__}: {str(error)[:150]}"
        signal.alarm(0)
        seconds, taken = time.process_time() - started, resident("VmHWM") - before
        if seconds > SECONDS:
            result = f"failed: {seconds:.0f} seconds"
        if taken > MAX_BYTES + SPARE_BYTES and not SANITIZED:
            result = f"failed: {taken / 1e6:.0f} MB"
        entry = {"seed": seed, "result": result, "seconds": seconds, "bytes": taken}
        print(json.dumps(entry), flush=True)
    path.unlink(missing_ok=True)


class Verdicts:
    """What became of the files."""

    def __init__(self) -> None:
        self.counts: Counter = Counter()
        self.failures: list[str] = []
        self.slowest, self.largest = (0.0, 0), (0, 0)

    def add(self, name: str, entry: dict[str, Any]) -> None:
        """Count a file that was loaded or refused."""
        kind = entry["result"].split(":")[0]
        self.counts[f"{name}: {kind}"] += 1
        self.slowest = max(self.slowest, (entry["seconds"], entry["seed"]))
        self.largest = max(self.largest, (entry["bytes"], entry["seed"]))
        if kind == "failed":
            self.failures.append(f"seed {entry['seed']} ({name}): {entry['result']}")

    def add_crash(self, name: str, seed: int, done: subprocess.CompletedProcess) -> None:
        """Count a file that ended the process."""
        self.counts[f"{name}: crashed"] += 1
        said = done.stderr[-1500:]
        self.failures.append(f"seed {seed} ({name}): process ended with {done.returncode} {said}")

    def tell(self) -> None:
        """Print counts, extremes and the first failures."""
        for kind, n in sorted(self.counts.items()):
            print(f"{n:6d}  {kind}")
        refused = sum(n for kind, n in self.counts.items() if kind.endswith("refused"))
        (seconds, slow), (taken, large) = self.slowest, self.largest
        print(
            f"{self.counts.total()} mutations: {refused} refused, longest {seconds:.2f} s (seed "
            f"{slow}), most memory {taken / 1e6:.0f} MB (seed {large}) of "
            f"{(MAX_BYTES + SPARE_BYTES) / 1e6:.0f}"
        )
        for failure in self.failures[:20]:
            print("FAILED", failure)
        print(f"{len(self.failures)} failures")


def run(folder: Path, first: int, n_mutations: int) -> Verdicts:
    """Load all mutations, in a new process where one has ended."""
    verdicts, last = Verdicts(), first + n_mutations
    while first < last:
        command = [sys.executable, "-X", "faulthandler", __file__, "--worker", str(folder)]
        # A new process now and then: what piles up over thousands of files is not theirs.
        end = min(last, first + 2000)
        done = subprocess.run(
            [*command, str(first), str(end)], capture_output=True, text=True, check=False
        )
        begun, name = first, "start"
        for line in done.stdout.splitlines():
            entry = json.loads(line)
            if "mutation" in entry:
                begun, name = entry["seed"], entry["mutation"]
                continue
            verdicts.add(name, entry)
            first = entry["seed"] + 1
        if done.returncode != 0:
            verdicts.add_crash(name, begun, done)
            if name == "start":  # the files that nobody has changed: no mutation was tried
                break
            first = begun + 1
    return verdicts


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        work(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--samples", type=Path, help="folder of files to start from; else made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.samples is None:
            samples(folder)
        else:
            for path in options.samples.glob("*.hetcal"):
                (folder / path.name).write_bytes(path.read_bytes())
        print(f"{len(list(folder.glob('*.hetcal')))} files to start from")
        verdicts = run(folder, options.first, options.mutations)
    verdicts.tell()
    return 1 if verdicts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
