"""The page of the proof, ``docs/proof.md``, written from stored results alone.

The same results give the same text and pictures, so that a test can tell when they disagree.
"""

from benchmarks.page.document import page_files, write_page

__all__ = ["page_files", "write_page"]
