"""``python -m hetcal``: the same commands as ``hetcal``."""

from hetcal.cli import main

if __name__ == "__main__":
    main()
