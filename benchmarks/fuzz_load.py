"""Load damaged and hostile files: each must be refused, or give a calibrator that works.

Every mutation starts from a file that ``hetcal.save`` wrote. Some flip bits, cut or splice the
bytes as they are; others change the JSON tree or the arrays and then repair all checksums, so that
the wrong content reaches the checks behind them. A file counts as

- refused: ``hetcal.load`` raised ``FileFormatError``;
- loaded: ``predict_proba`` on several rows gives an array of the right shape.

Anything else (another exception, a crash, more memory or time than allowed) is a failure, and the
exit status is 1. Files are loaded in a process of its own with limited memory; one that crashes or
hangs is noted and replaced.

    python benchmarks/fuzz_load.py --mutations 10000
"""

from __future__ import annotations

import argparse
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
from pathlib import Path

import numpy as np

MEMORY = 3 << 30
SECONDS = 20
HEADER = struct.Struct("<8sIIQ32s")
ODD_VALUES = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    255,
    2**31,
    -(2**31),
    2**63,
    10**30,
    0.5,
    -1.0,
    1e308,
    5e-324,
    "",
    "x",
    "forest",
    [],
    [[]],
    {},
    {"$": "float", "value": "nan"},
    {"$": "float", "value": "inf"},
    {"$": "array", "index": 0},
    {"$": "array", "index": 10**9},
    {"$": "tuple", "items": []},
    {"$": "dict", "items": []},
    {"$": "object", "class": "Popen", "state": {}},
    {"$": "object", "class": "Forest", "state": {}},
    {"$": "strings", "width": 10**9, "values": ["a"]},
    {"$": "sparse", "shape": [2**40, 2**40], "data": [], "indices": [], "indptr": []},
]
ODD_NUMBERS = [-1, 0, 1, 2, 7, 255, 2**15, 2**31 - 1, -(2**31), 2**62, np.nan, np.inf, -np.inf]
DTYPES = ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "|O", "<U3"]


def samples(folder: Path) -> list[Path]:
    """Save one tiny calibrator of every kind."""
    import pandas as pd

    import hetcal
    from hetcal.calibration import get_calibrator
    from hetcal.datasets import make_hidden_heterogeneity
    from hetcal.similarity import CombinedSimilarity, ForestProximity, RBFSimilarity

    data = make_hidden_heterogeneity(60, heterogeneity=1.0, random_state=0)
    table = pd.DataFrame(data.X[:, :2], columns=["a", "b"])
    table["colour"] = np.where(data.X[:, 0] > 0, "red", "blue")
    few = {"n_estimators": 4}
    made = {
        name: get_calibrator(name)
        for name in ("platt", "temperature", "bcts", "vector", "beta", "isotonic", "histogram")
    }
    made |= {
        "swc": hetcal.SimilarityCalibrator(ForestProximity(6)),
        "swc-oob": hetcal.SimilarityCalibrator(ForestProximity(6, voters="out-of-bag")),
        "isolation": hetcal.SimilarityCalibrator("isolation", n_neighbors=9, power=3.0),
        "sbaw": get_calibrator("sbaw"),
        "rbf": hetcal.SimilarityCalibrator("rbf"),
        "combined": hetcal.SimilarityCalibrator(
            CombinedSimilarity(ForestProximity(4), RBFSimilarity())
        ),
        "swc-hh": hetcal.SimilarityCalibrator(
            ForestProximity(4),
            heterogeneity=hetcal.HiddenHeterogeneity(n_null=3, radius=0.3, n_estimators=5),
        ),
        "hybrid": hetcal.HybridCalibrator(**few),
        "hybrid-all": hetcal.HybridCalibrator(**few),
        "preserving": hetcal.LabelPreserving(hetcal.SimilarityCalibrator(ForestProximity(4))),
    }
    paths = []
    warnings.simplefilter("ignore")  # about calibration sets of sixty items
    for name, calibrator in made.items():
        calibrator.fit(data.X, data.y, y_proba=data.y_proba)
        if name == "hybrid-all":  # every expert has a say, and so its place in the file
            calibrator.share_ = 1.0
            calibrator.weights_[:] = 1 / len(calibrator.weights_)
        paths.append(folder / f"{name}.hetcal")
        hetcal.save(calibrator, paths[-1], date=None)
    swc = hetcal.SimilarityCalibrator(ForestProximity(6)).fit(table, data.y, y_proba=data.y_proba)
    for name, forget in (("table", False), ("forgotten", True)):
        paths.append(folder / f"{name}.hetcal")
        hetcal.save(swc, paths[-1], forget_features=forget, date=None)
    return paths


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


def change_tree(content: bytes, rng: random.Random) -> bytes:
    manifest, arrays = parts(content)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        found = places_of(manifest["root"])
        if not found:
            break
        container, key = rng.choice(found)
        kind = rng.randrange(6)
        if kind <= 1:
            container[key] = copy.deepcopy(rng.choice(ODD_VALUES))
        elif kind == 2:
            del container[key]
        elif kind == 3:
            other, place = rng.choice(found)
            container[key] = copy.deepcopy(other[place])
        elif kind == 4 and isinstance(container[key], int | float):
            container[key] = rng.choice([container[key] + 1, -container[key], container[key] * 2])
        elif kind == 5 and isinstance(container, dict):
            container[rng.choice(["_x", "predict_proba", "__class__", "extra_"])] = container[key]
    return joined(manifest, arrays)


def nest(content: bytes, rng: random.Random) -> bytes:
    """Put something very deep into the tree."""
    manifest, arrays = parts(content)
    container, key = rng.choice(places_of(manifest["root"]))
    container[key] = "MARK"
    depth = rng.choice([30, 900, 100_000])
    file = joined(manifest, arrays)
    length = HEADER.unpack(file[: HEADER.size])[3]
    text = file[HEADER.size : HEADER.size + length]
    text = text.replace(b'"MARK"', b"[" * depth + b"0" + b"]" * depth)
    head = HEADER.pack(b"\x89HETCAL\n", 1, 0, len(text), hashlib.sha256(text).digest())
    return head + text + file[HEADER.size + length :]


def change_array(content: bytes, rng: random.Random) -> bytes:
    manifest, arrays = parts(content)
    table = manifest["arrays"]
    for _ in range(rng.choice([1, 1, 2, 3])):
        if not table:
            break
        i = rng.randrange(len(table))
        values = np.frombuffer(arrays[i], dtype=table[i]["dtype"]).copy()
        kind = rng.randrange(5)
        if kind <= 1 and values.size:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _ in range(rng.choice([1, 1, 3, values.size])):
                    odd = np.array([rng.choice(ODD_NUMBERS)]).astype(values.dtype)
                    values[rng.randrange(values.size)] = odd[0]
        elif kind == 2 and values.size:
            np.random.default_rng(rng.randrange(2**32)).shuffle(values)
        elif kind == 3:
            values = rng.choice([values[:-1], np.concatenate([values, values]), values[:0]])
            width = table[i]["shape"][1:]
            table[i]["shape"] = [len(values) // max(int(np.prod(width)), 1), *width]
        else:
            j = rng.randrange(len(table))
            arrays[i], arrays[j] = arrays[j], arrays[i]
            table[i], table[j] = table[j], table[i]
            continue
        arrays[i] = values.tobytes()
    return joined(manifest, arrays)


def change_table(content: bytes, rng: random.Random) -> bytes:
    """Let the table of arrays say something else than what is stored."""
    manifest, arrays = parts(content)
    table = manifest["arrays"]
    if not table:
        return change_header(content, rng)
    file = joined(manifest, arrays)
    entry = rng.choice(table)
    name = rng.choice(["dtype", "shape", "order", "encoding", "bytes", "sha256"])
    entry[name] = {
        "dtype": rng.choice(DTYPES),
        "shape": rng.choice([[2**40, 2**40], [10**9], [0], [-1], 5 * [1], entry["shape"][::-1]]),
        "order": rng.choice(["C", "F", "K", None]),
        "encoding": rng.choice(["raw", "zlib", "lzma"]),
        "bytes": rng.choice([0, entry["bytes"] + 1, 2**62, -5]),
        "sha256": "0" * 64,
    }[name]
    length = HEADER.unpack(file[: HEADER.size])[3]
    text = json.dumps(manifest).encode()
    head = HEADER.pack(b"\x89HETCAL\n", 1, 0, len(text), hashlib.sha256(text).digest())
    return head + text + file[HEADER.size + length :]


def bomb(content: bytes, rng: random.Random) -> bytes:
    """Unpack to far more than the file's size."""
    manifest, arrays = parts(content)
    size = rng.choice([1 << 20, 1 << 24, 1 << 27])
    entry = {"dtype": "<f8", "shape": [size // 8], "order": "C", "encoding": "zlib"}
    if rng.random() < 0.5:
        entry["shape"] = [1]
    manifest["arrays"].append(entry)
    return joined(manifest, [*arrays, bytes(size)])


MUTATIONS = [
    *(flip_bits, cut, splice, change_header, change_table, nest, bomb),
    *(3 * [change_array]),
    *(4 * [change_tree]),
]


def mutated(contents: list[bytes], seed: int) -> tuple[str, bytes]:
    """Return the name of a mutation, and the file it gives."""
    rng = random.Random(seed)
    mutation = MUTATIONS[seed % len(MUTATIONS)]
    if mutation is bomb and seed % 5:
        mutation = change_tree  # bombs are dear to make
    return mutation.__name__, mutation(rng.choice(contents), rng)


# -- the process that loads ----------------------------------------------------------------------


def outcome(path: Path, seed: int) -> str:
    """Load one file and use it."""
    import hetcal
    from hetcal.io.trial import encoder_of, made_up_features, made_up_output

    try:
        calibrator = hetcal.load(path)
    except hetcal.FileFormatError:
        return "refused"
    X = made_up_features(encoder_of(calibrator), 11)
    if isinstance(X, np.ndarray):
        X = X + np.random.default_rng(seed).normal(size=X.shape)
    output = made_up_output(calibrator, 11)
    Q = calibrator.predict_proba(X, **output)
    if Q.shape != (11, len(calibrator.classes_)):
        return f"failed: shape {Q.shape}"
    for name in ("evidence", "effective_sample_size", "predict_interval", "support"):
        method = getattr(calibrator, name, None)
        try:
            if method is not None:
                method(X, **output)
            if name == "support":
                _ = getattr(calibrator, "out_of_sample_proba_", None)
        except Exception as error:  # must not crash; a plain exception is fine for these
            return f"loaded, {name} raised {type(error).__name__}"
    return "loaded"


def work(folder: Path, first: int, last: int) -> None:
    """Load the mutations of a range of seeds, one line of JSON each."""
    import signal

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    contents = [path.read_bytes() for path in sorted(folder.glob("*.hetcal"))]
    path = folder / f"mutated-{os.getpid()}"
    for seed in range(first, last):
        name, content = mutated(contents, seed)
        path.write_bytes(content)
        print(json.dumps({"seed": seed, "mutation": name}), flush=True)
        signal.alarm(SECONDS)  # its default action ends the process
        started = time.process_time()
        try:
            result = outcome(path, seed)
        except Exception as error:
            result = f"failed: {type(error).__name__}: {str(error)[:150]}"
        signal.alarm(0)
        seconds = time.process_time() - started
        print(json.dumps({"seed": seed, "result": result, "seconds": seconds}), flush=True)
    path.unlink(missing_ok=True)


def run(folder: Path, first: int, n_mutations: int) -> tuple[Counter, list[str], tuple[float, int]]:
    """Load all mutations; return counts of outcomes, failures, and the longest time."""
    counts: Counter = Counter()
    failures: list[str] = []
    longest = 0.0, 0
    last = first + n_mutations
    while first < last:
        command = [sys.executable, __file__, "--worker", str(folder), str(first), str(last)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        begun, name = first, "start"
        for line in done.stdout.splitlines():
            entry = json.loads(line)
            if "mutation" in entry:
                begun, name = entry["seed"], entry["mutation"]
                continue
            kind = entry["result"].split(":")[0]
            counts[f"{name}: {kind}"] += 1
            longest = max(longest, (entry["seconds"], begun))
            if kind == "failed":
                failures.append(f"seed {begun} ({name}): {entry['result']}")
            first = entry["seed"] + 1
        if done.returncode != 0:
            failures.append(
                f"seed {begun} ({name}): process ended with {done.returncode} {done.stderr[-300:]}"
            )
            counts[f"{name}: crashed"] += 1
            first = begun + 1
    return counts, failures, longest


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        work(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{len(samples(folder))} files to start from")
        counts, failures, longest = run(folder, options.first, options.mutations)
    for kind, n in sorted(counts.items()):
        print(f"{n:6d}  {kind}")
    refused = sum(n for kind, n in counts.items() if kind.endswith("refused"))
    slow, seed = longest
    print(f"{counts.total()} mutations: {refused} refused, longest {slow:.2f} s (seed {seed})")
    for failure in failures[:20]:
        print("FAILED", failure)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
