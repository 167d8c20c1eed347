"""Make the picture of the README again: ``python examples/picture_of_the_readme.py [FILE.png]``."""

import sys
from pathlib import Path

from PIL import Image

from hetcal.cli._demo import run_demo

target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/_static/demo.png")
run_demo(seed=0, out=target, quiet=True)
# 64 colours are enough for lines and text, and a third of the size.
Image.open(target).convert("RGB").quantize(64).save(target, optimize=True)
print(f"{target}: {target.stat().st_size / 1024:.0f} KB")
