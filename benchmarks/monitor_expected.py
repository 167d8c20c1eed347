"""What the monitor expects of a bank's calls without labels, beside what the labels showed.

    HETCAL_DATA=... python benchmarks/monitor_expected.py    # 1 minute on one core
    ... --nannyml PYTHON    # and NannyML's CBPE, by the Python of an environment that has NannyML
    ... --html FILE.html    # and what the monitor said, in the order of time, as a page
    ... --turned            # the paper's shift experiment instead, 2 minutes

bank-marketing in its order of time, without the duration of the call: a gradient-boosted model
trained on calls 0 to 12 000, calibrated on the next 4000, then watched in blocks of 2000. Beside
the calibrator: the mean of p after one isotonic map, which is how CBPE estimates, and CBPE itself
(reference: the calibration calls; the model's own decisions). Nothing was tuned on the blocks that
are shown. The second table repeats it with calls in random order (seed
0), where nothing changes.

``--turned``: mnist-1v7, a linear SVM on 500 items, SWC on 3000, 600 new items of which a share is
turned by 90 degrees; 20 draws (seeds 200 to 219, seen by no other benchmark).
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.preprocessing import OrdinalEncoder

import hetcal
from hetcal.datasets import load_dataset, paper_classifier
from hetcal.report import MonitorReport

TRAIN, CALIBRATE, BLOCK = 12_000, 4000, 2000


def calls(order_seed):
    """Return features and labels, in the order of time or in a random one."""
    table = pd.read_csv(Path(os.environ["HETCAL_DATA"]) / "bank-marketing.csv.gz")
    if order_seed is not None:
        table = table.sample(frac=1.0, random_state=order_seed, ignore_index=True)
    y = (table["y"] == "yes").to_numpy().astype(int)
    X = table.drop(columns=["y", "duration"])
    text = X.select_dtypes(exclude="number").columns
    X[text] = OrdinalEncoder().fit_transform(X[text])
    return X.to_numpy(float), y


def cbpe(python, y, p):
    """Print what CBPE expects of each block, and how often its intervals hold."""
    first, n = TRAIN, TRAIN + CALIBRATE + (len(y) - TRAIN - CALIBRATE) // BLOCK * BLOCK
    part = np.where(np.arange(len(y)) < TRAIN + CALIBRATE, "reference", "later")
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.csv"
        pd.DataFrame({"part": part, "y": y, "p": p})[first:n].to_csv(rows, index=False)
        script = Path(__file__).with_name("peer_cbpe.py")
        command = [python, str(script), str(rows), str(BLOCK)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = pd.read_csv(io.StringIO(said[said.index("value,") :]))
    right = ((p > 0.5) == y)[TRAIN + CALIBRATE : n].reshape(-1, BLOCK)
    shown, error = right.mean(axis=1), found["sampling_error"].to_numpy()
    off = found["value"].to_numpy() - shown
    yield f"NannyML {found['version'][0]} CBPE, accuracy expected for shown: "
    yield ", ".join(f"{a:.3f} for {b:.3f}" for a, b in zip(found["value"], shown, strict=True))
    yield f"\nmean absolute error {np.abs(off).mean():.4f}; its intervals (3 sampling errors) hold "
    yield f"{np.mean(np.abs(off) <= 3 * error):.0%}, of 1.96 sampling errors "
    yield f"{np.mean(np.abs(off) <= 1.96 * error):.0%}\n"


def story(write, order_seed, nannyml):
    """Print one row per block; return the monitor."""
    X, y = calls(order_seed)
    cal = slice(TRAIN, TRAIN + CALIBRATE)
    model = HistGradientBoostingClassifier(random_state=0).fit(X[:TRAIN], y[:TRAIN])
    P = model.predict_proba(X)
    swc = hetcal.SimilarityCalibrator().fit(X[cal], y[cal], y_proba=P[cal])
    monitor = hetcal.SupportMonitor(swc).fit(X[cal], y_proba=P[cal])
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(P[cal, 1], y[cal])
    write("| calls | accuracy expected | shown | isotonic | Brier expected | shown | isotonic ")
    write("| flagged | note | alarms |\n")
    inside, errors = [], []
    for start in range(TRAIN + CALIBRATE, len(y) - BLOCK + 1, BLOCK):
        rows = slice(start, start + BLOCK)
        got = monitor.expected_performance(X[rows], y_proba=P[rows])
        Q = swc.predict_proba(X[rows], y_proba=P[rows])
        q = isotonic.predict(P[rows, 1])
        shown = np.mean(Q.argmax(axis=1) == y[rows]), hetcal.metrics.brier_score(y[rows], Q)
        plain = np.mean(np.maximum(q, 1 - q)), np.mean(2 * q * (1 - q))
        own = np.mean((q > 0.5) == y[rows]), np.mean(2 * (q - y[rows]) ** 2)
        inside.append(
            [e.low <= s <= e.high for e, s in zip((got.accuracy, got.brier), shown, strict=True)]
        )
        errors.append([got.accuracy.value - shown[0], plain[0] - own[0]])
        errors[-1] += [got.brier.value - shown[1], plain[1] - own[1]]
        monitor.update(X[rows], y_proba=P[rows], y=y[rows])
        tests = "; ".join(sorted({alarm["test"] for alarm in monitor.alarms_})) or "none"
        accuracy, brier = (
            f"{e.value:.3f} ({e.low:.3f} to {e.high:.3f})" for e in (got.accuracy, got.brier)
        )
        write(
            f"| {start} | {accuracy} | {shown[0]:.3f} | {plain[0]:.3f} for {own[0]:.3f} | {brier} "
            f"| {shown[1]:.3f} | {plain[1]:.3f} for {own[1]:.3f} | {got.flagged:.1%} "
            f"| {'yes' if got.note else ''} | {tests} |\n"
        )
        sys.stdout.flush()
    hits, mean = np.mean(inside, axis=0), np.abs(errors).mean(axis=0)
    write(f"intervals hold: accuracy {hits[0]:.0%}, Brier {hits[1]:.0%}; mean absolute error ")
    write("accuracy {:.4f} (isotonic {:.4f}), Brier {:.4f} (isotonic {:.4f})\n".format(*mean))
    if nannyml is not None:
        for text in cbpe(nannyml, y, P[:, 1]):
            write(text)
    return monitor


def turned_run(pixels, y, seed):
    """Return one row for each share of turned items."""
    rng = np.random.default_rng(seed)
    train, cal, new = np.split(rng.permutation(len(y)), [500, 3500])
    center, spread = pixels[train].mean(axis=0), pixels[train].std(axis=0)
    spread[spread == 0] = 1.0
    X = (pixels - center) / spread
    model = paper_classifier("SVM").fit(X[train], y[train])
    P = model.predict_proba(X[cal])
    swc = hetcal.SimilarityCalibrator().fit(X[cal], y[cal], y_proba=P)
    monitor = hetcal.SupportMonitor(swc).fit(X[cal], y_proba=P)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(P[:, 1], y[cal] == swc.classes_[1])
    for share in (0.0, 0.1, 0.5, 1.0):
        rows = rng.choice(new, 600, replace=False)
        images, turned = pixels[rows].reshape(-1, 28, 28), rng.random(600) < share
        images[turned] = np.rot90(images[turned], k=1, axes=(1, 2))
        now = (images.reshape(600, -1) - center) / spread
        stated = model.predict_proba(now)
        got = monitor.expected_performance(now, y_proba=stated)
        Q, q = swc.predict_proba(now, y_proba=stated), isotonic.predict(stated[:, 1])
        shown = np.mean(swc.classes_[Q.argmax(axis=1)] == y[rows])
        yield {
            "share": share,
            "expected": got.accuracy.value,
            "shown": shown,
            "off": abs(got.accuracy.value - shown),
            "holds": got.accuracy.low <= shown <= got.accuracy.high,
            "isotonic": np.mean(np.maximum(q, 1 - q)),
            "its shown": np.mean((q > 0.5) == (y[rows] == swc.classes_[1])),
            "flagged": got.flagged,
            "note": got.note is not None,
        }


def turned_table(write):
    """Print means over draws of the paper's shift experiment."""
    data = load_dataset("mnist-1v7")
    pixels, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    rows = [row for seed in range(200, 220) for row in turned_run(pixels, y, seed)]
    write(pd.DataFrame(rows).groupby("share").mean().round(3).to_string() + "\n")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nannyml", metavar="PYTHON", help="of an environment with NannyML")
    parser.add_argument("--html", metavar="FILE.html", help="the page of the first table")
    parser.add_argument("--turned", action="store_true", help="the paper's shift experiment")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.turned:
        turned_table(sys.stdout.write)
        return
    for order_seed in (None, 0):
        sys.stdout.write(f"\norder: {'time' if order_seed is None else 'random'}\n")
        monitor = story(sys.stdout.write, order_seed, options.nannyml)
        if order_seed is None and options.html is not None:
            MonitorReport.of(monitor, name="a bank's calls").to_html(options.html)


if __name__ == "__main__":
    main()
