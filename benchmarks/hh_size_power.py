"""Size and power of the test for hidden heterogeneity, by simulation on data with a known truth.

Writes hh_size.csv, hh_power.csv, hh_fdr.csv and hh_power.png. Usage::

    python benchmarks/hh_size_power.py --output docs/_static --draws 400 --jobs -1

*Size*: data sets in which nothing is hidden (P(y | x) = h(p)), two and five classes, well
calibrated and over-confident. *Power*: the dial of `make_hidden_heterogeneity`, beside an oracle
that knows the hidden groups and the true h(p). *False discoveries*: heterogeneity only where p >
0.5; cells that see no such item are true nulls.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special

from hetcal.data import Folds
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.heterogeneity import out_of_bag
from hetcal.heterogeneity.cells import net_of_cells
from hetcal.heterogeneity.direction import studentised
from hetcal.heterogeneity.global_map import CrossFittedMap
from hetcal.heterogeneity.null import benjamini_hochberg, null_p_values
from hetcal.kernels.simplex import log_probabilities, zero_floor

SETTINGS = [(K, m) for K in (2, 5) for m in (0.0, 1.0)]
DIAL = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SIZES = (300, 1000)
LEVEL = 0.05


def p_values(X, codes, P, *, n_null, seed=0, min_neighbors=20):
    """Test the whole set and the net's cells: `HiddenHeterogeneity.fit` without local forests."""
    items = out_of_bag.Items(P, codes, np.ones(len(codes)), None)
    log_proba = log_probabilities(P, zero_floor(P))
    folds = Folds.make(len(codes), 5, seed=[seed, 0])
    draws = out_of_bag.NullDraws(
        items,
        np.hstack([X, log_proba]).astype(np.float32),
        CrossFittedMap(log_proba, codes, items.weight, folds),
        n_null=n_null,
        fold=None,
        seed=seed,
        n_jobs=1,
    )
    balls = net_of_cells(P, 0.1, "net")
    balls = balls.subset(np.flatnonzero(balls.sizes >= min_neighbors))
    T = studentised(draws.terms, draws.variances, balls.membership(np.ones(len(codes))), None)
    return out_of_bag.whole_set_test(items, draws)[1], null_p_values(T[:, 0], T[:, 1:]), balls


def oracle_p_value(data, codes):
    """Score test of the direction that the dial moves the truth in, with h(p) known."""
    H = data.recalibrated_proba
    law = replace(data.law, heterogeneity=1.0)
    direction = law.true_proba(data.X) - H
    S = ((np.eye(H.shape[1])[codes] - H) * direction).sum()
    mean = (H * direction).sum(axis=1)
    variance = ((H * direction**2).sum(axis=1) - mean**2).sum()
    return float(special.ndtr(-S / np.sqrt(variance)))


def one_draw(n, K, miscalibration, heterogeneity, seed, n_null):
    data = make_hidden_heterogeneity(
        n,
        n_classes=K,
        miscalibration=miscalibration,
        heterogeneity=heterogeneity,
        random_state=seed,
    )
    p, cells, _ = p_values(data.X, data.y, data.y_proba, n_null=n_null)
    return {
        "n": n,
        "classes": K,
        "miscalibration": miscalibration,
        "heterogeneity": heterogeneity,
        "seed": seed,
        "p_value": p,
        "oracle_p_value": oracle_p_value(data, data.y),
        "any_cell": bool((benjamini_hochberg(cells) <= LEVEL).any()),
    }


def false_discoveries(n, K, seed, n_null, heterogeneity=1.0):
    """Measure the share of true nulls among the cells found; only p > 0.5 hides something."""
    data = make_hidden_heterogeneity(n, n_classes=K, heterogeneity=heterogeneity, random_state=seed)
    affected = data.y_proba[:, -1] > 0.5
    truth = np.where(affected[:, None], data.true_proba, data.recalibrated_proba)
    uniform = np.random.default_rng(seed).uniform(size=(n, 1))
    codes = (uniform >= np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    _, p, balls = p_values(data.X, codes, data.y_proba, n_null=n_null)
    found = benjamini_hochberg(p) <= LEVEL
    touched = balls.membership(np.ones(n)) @ affected > 0
    return {
        "n": n,
        "classes": K,
        "seed": seed,
        "found": int(found.sum()),
        "false_share": (found & ~touched).sum() / max(found.sum(), 1),
        "found_of_touched": (found & touched).sum() / max(touched.sum(), 1),
    }


def size_of(run, args, K, miscalibration):
    rows = pd.DataFrame(
        run(
            delayed(one_draw)(args.n, K, miscalibration, 0.0, seed, args.n_null)
            for seed in range(args.draws)
        )
    )
    rows["alarm"] = rows["p_value"] <= LEVEL
    rows["alarm_10"] = rows["p_value"] <= 0.10
    return rows.groupby(["n", "classes", "miscalibration"], as_index=False).agg(
        data_sets=("alarm", "size"),
        alarms_5=("alarm", "mean"),
        alarms_10=("alarm_10", "mean"),
        any_cell=("any_cell", "mean"),
    )


def draw_plot(power: pd.DataFrame, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4.1), layout="constrained", sharey=True)
    colors = {300: "#56B4E9", 1000: "#0072B2"}
    for ax, K in zip(axes, (2, 5), strict=True):
        part = power[power["classes"] == K]
        for n, rows in part.groupby("n"):
            ax.plot(
                rows["heterogeneity"], rows["power"], "o-", color=colors[n], label=f"test, n = {n}"
            )
            ax.plot(
                rows["heterogeneity"],
                rows["oracle"],
                ":",
                color=colors[n],
                label=f"oracle, n = {n}",
            )
        ax.axhline(LEVEL, color="#333333", linewidth=0.8, linestyle=(0, (4, 3)))
        ax.set(title=f"{K} classes", xlabel="heterogeneity", ylim=(0, 1.03), xlim=(0, 1))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share of data sets with p <= 0.05")
    figure.legend(
        *axes[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=4
    )
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/_static"))
    parser.add_argument("--draws", type=int, default=400, help="data sets per setting of the size")
    parser.add_argument("--power-draws", type=int, default=100)
    parser.add_argument("--n", type=int, default=500, help="items per data set of the size")
    parser.add_argument("--n-null", type=int, default=39)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--parts", nargs="*", default=["size", "power", "fdr"])
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    run = Parallel(n_jobs=args.jobs)
    if "size" in args.parts:
        parts = []
        for K, m in SETTINGS:  # one setting after the other, so that a long run shows something
            parts.append(size_of(run, args, K, m))
            print(parts[-1].round(4).to_string(index=False, header=len(parts) == 1), flush=True)
            pd.concat(parts).round(4).to_csv(args.output / "hh_size.csv", index=False)
    if "power" in args.parts:
        rows = pd.DataFrame(
            run(
                delayed(one_draw)(n, K, 0.0, dial, 10_000 + seed, args.n_null)
                for K in (2, 5)
                for n in SIZES
                for dial in DIAL
                for seed in range(args.power_draws)
            )
        )
        rows["power"] = rows["p_value"] <= LEVEL
        rows["oracle"] = rows["oracle_p_value"] <= LEVEL
        power = rows.groupby(["classes", "n", "heterogeneity"], as_index=False).agg(
            data_sets=("power", "size"), power=("power", "mean"), oracle=("oracle", "mean")
        )
        power.round(4).to_csv(args.output / "hh_power.csv", index=False)
        print(power.to_string(index=False), flush=True)
        draw_plot(power, args.output / "hh_power.png")
    if "fdr" in args.parts:
        rows = pd.DataFrame(
            run(
                delayed(false_discoveries)(1000, K, seed, args.n_null)
                for K in (2, 5)
                for seed in range(args.power_draws)
            )
        )
        fdr = rows.groupby(["n", "classes"], as_index=False).agg(
            data_sets=("found", "size"),
            false_discovery_rate=("false_share", "mean"),
            found_of_touched=("found_of_touched", "mean"),
        )
        fdr.round(4).to_csv(args.output / "hh_fdr.csv", index=False)
        print(fdr.to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
