"""The paper's experiments; so far its figures, see :mod:`hetcal.experiments.published`."""
