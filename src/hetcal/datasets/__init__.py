"""Data: synthetic sets with known truth, and the paper's sets by name with its exact splits."""

from hetcal.datasets._base import Dataset, DatasetUnavailableError
from hetcal.datasets._catalogue import list_datasets
from hetcal.datasets._loader import load_dataset
from hetcal.datasets._paper import PaperSplit, paper_classifier, paper_split
from hetcal.datasets._synthetic import (
    HiddenHeterogeneityLaw,
    SyntheticDataset,
    make_hidden_heterogeneity,
)
from hetcal.datasets.problems import Problem, list_problems, make_problem

__all__ = [
    "Dataset",
    "DatasetUnavailableError",
    "HiddenHeterogeneityLaw",
    "PaperSplit",
    "Problem",
    "SyntheticDataset",
    "list_datasets",
    "list_problems",
    "load_dataset",
    "make_hidden_heterogeneity",
    "make_problem",
    "paper_classifier",
    "paper_split",
]
