"""Compiled kernels. Import them through :mod:`hetcal.kernels`, never from here."""
