"""The parts of the proof: which script answers which question, and about how long it takes.

A part is a script of this folder with arguments. Scripts can be run by themselves
(``python benchmarks/NAME.py``); what they ask is the first line of their docstring.
"""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"


@dataclass(frozen=True)
class Part:
    """One run of one script.

    Parameters
    ----------
    topic : str
    name : str
        What the part is called within its topic.
    command : str
        The script's name without ``.py``, then its arguments.
    minutes : float
        Processor time on one core, about, where nothing is stored yet.
    needs : str
        What has to be there beside hetcal: "data" (``HETCAL_DATA``), "peers" (the packages of
        ``requirements-peers.txt``), or nothing.
    stores : str
        The file of results that it writes, relative to the repository; empty where it only prints.
    in_full : bool
        Whether ``python -m benchmarks full`` runs it; not where it needs another version of hetcal.
    asks : str
        What it asks, where its script asks several things; else the first line of the docstring.
    """

    topic: str
    name: str
    command: str
    minutes: float
    needs: str = ""
    stores: str = ""
    in_full: bool = True
    asks: str = ""

    @property
    def script(self) -> Path:
        """The script's file."""
        return FOLDER / f"{self.command.split()[0]}.py"

    @property
    def arguments(self) -> list[str]:
        """What the script is given."""
        return self.command.split()[1:]

    @property
    def question(self) -> str:
        """What is asked."""
        if self.asks:
            return self.asks
        text = ast.get_docstring(ast.parse(self.script.read_text(encoding="utf-8")))
        return (text or "").splitlines()[0]


PARTS = (
    Part(
        "repair",
        "paper",
        "hybrid paper --results experiments/results",
        600,
        "data peers",
        asks="The hybrid, the paper's eight methods, retrained models and MCGrad, paper's sizes.",
    ),
    Part(
        "repair",
        "sizes",
        "hybrid sizes --results experiments/results",
        30,
        "data peers",
        asks="The same with 50, 200 and 1000 calibration items.",
    ),
    Part(
        "repair",
        "networks",
        "hybrid cifar --results experiments/results",
        20,
        "data",
        asks="The same on three networks and their latent features.",
    ),
    Part(
        "repair",
        "black-boxes",
        "hybrid tables --results experiments/results",
        30,
        "data peers",
        asks="The same on adult, bank-marketing and credit-default.",
    ),
    Part(
        *("repair", "tables", "repair_tables", 40, "data peers"),
        stores="benchmarks/results/repair_tables.csv",
    ),
    Part("repair", "worst-group", "worst_group", 3, "data"),
    Part("repair", "development", "hybrid_development", 30, "data"),
    Part("repair", "wide", "wide_boosting --hybrid", 10, "data"),
    Part(
        "maps",
        "peers",
        "global_calibrators --trials 2",
        60,
        "data peers",
        asks="Global maps beside those of other packages.",
    ),
    Part(
        "maps",
        "perfect",
        "global_calibrators --part perfect",
        10,
        asks="What the global map costs where the probabilities are right already.",
    ),
    Part(
        "maps",
        "cost",
        "global_calibrators --part cost",
        0.2,
        asks="Seconds that each global map takes.",
    ),
    Part(
        *("diagnosis", "size", "heterogeneity_test size --n 100 300 1000 3000", 120),
        stores="benchmarks/results/heterogeneity_confirm.csv",
        asks="How often the test of hidden heterogeneity rejects where nothing is hidden.",
    ),
    Part(
        *("diagnosis", "power", "heterogeneity_test power", 120),
        stores="benchmarks/results/heterogeneity_confirm.csv",
        asks="How often it rejects where something is.",
    ),
    Part(
        "diagnosis",
        "bound",
        "heterogeneity_test bound --n 2000 10000",
        240,
        asks="How often its lower bound covers the truth, and how near it comes.",
    ),
    Part(
        *("diagnosis", "rivals", "heterogeneity_test power --test new likelihood-ratio boosting"),
        *(240, ""),
        stores="benchmarks/results/heterogeneity_confirm.csv",
        asks="The same power for a likelihood ratio and for boosted residuals.",
    ),
    Part(
        *("diagnosis", "peers", f"heterogeneity_test peers --peers-python {sys.executable}"),
        *(240, "peers"),
        stores="benchmarks/results/heterogeneity_confirm.csv",
        asks="Size, power and time of other packages beside it.",
    ),
    Part("diagnosis", "calibration-tests", "calibration_tests", 20),
    Part(
        "diagnosis",
        "dependence",
        "dependence",
        10,
        asks="How often rows are said to belong together: independent rows, and events.",
    ),
    Part(
        "diagnosis",
        "near-copies",
        "dependence copies --first-seed 1000",
        4,
        asks="The same for rows of one event that differ a little, in any order.",
    ),
    Part("diagnosis", "advice", "advice --output benchmarks/results/logs/advice.csv --draws 1", 60),
    Part("diagnosis", "picture", "heterogeneity_picture docs/_static/tree_black_box.png", 2),
    Part("forecasts", "advice", "advice_tables", 15, "data"),
    Part(
        *("coverage", "levels", "coverage_of_levels", 180),
        stores="benchmarks/results/coverage.csv",
    ),
    Part("coverage", "gains", "stated_gain --items 60 --draws 150 --trees 30", 10),
    Part("coverage", "votes", "interval_coverage", 5),
    Part("coverage", "probabilities", "probability_intervals --items 500", 60),
    Part("coverage", "measuring", "measuring_coverage", 30),
    Part("monitor", "support", "monitor", 5, "data"),
    Part("monitor", "labels", "monitor_labels", 5),
    Part(
        "monitor",
        "neighbours",
        "monitor_dependence",
        3,
        stores="benchmarks/results/monitor_dependence.csv",
    ),
    Part("monitor", "flags", "support_flags", 10),
    Part("monitor", "expected", "monitor_expected", 1, "data"),
    Part("monitor", "refreshing", "refreshing", 1, "data"),
    Part("monitor", "week", "monitor_week", 5),
    Part("cost", "embeddings", "embeddings", 15),
    Part("cost", "growth", "growth", 10, "peers", stores="benchmarks/results/growth.csv"),
    Part("cost", "fit", "fit_speed", 1),
    Part(
        "cost",
        "fit-large",
        "fit_speed --large --wide",
        3,
        asks="The same with many rows, and with many columns.",
    ),
    Part("cost", "commands", "command_speed --large", 5),
    Part("cost", "hybrid", "hybrid_cost", 1),
    Part("cost", "apply", "apply_rows", 3),
    Part("cost", "scaling", "scaling", 30),
    Part(
        *("cost", "heterogeneity", "hh_speed --out experiments/results/speed/hh.csv", 20, "data"),
        stores="experiments/results/speed/hh.csv",
    ),
    Part(
        *("cost", "similarity"),
        *("swc_speed --out experiments/results/speed/similarity.csv", 10, "data"),
        stores="experiments/results/speed/similarity.csv",
    ),
    Part("cost", "similarity-memory", "swc_memory", 2),
    Part(
        *("cost", "checks", "border_checks --before OLDER/src --after src --instructions", 10),
        in_full=False,
    ),
    Part("security", "files", "fuzz_load --mutations 20000", 40),
    Part("mutations", "tests", "mutations", 60),
    Part("structure", "walks", "walks", 0.2),
    Part("structure", "lines", "lines_of_code", 0.1),
)


def topics() -> list[str]:
    """Return the topics in their order."""
    return list(dict.fromkeys(part.topic for part in PARTS))


def parts_of(topic: str) -> list[Part]:
    """Return the parts of a topic."""
    return [part for part in PARTS if part.topic == topic]


def script(name: str) -> ModuleType:
    """Import a script of this folder; scripts import each other by their bare names."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)
