"""The catalogue of problems with known truth: nulls and alternatives, half to develop on."""

from hetcal.datasets.problems.problem import Problem, list_problems, make_problem

__all__ = ["Problem", "list_problems", "make_problem"]
