"""The documentation's page of results, written from the results alone.

:func:`page_text` gives the page, :func:`draw_pictures` its pictures. The same results give the same
text, so that a test can tell when page and results disagree.
"""

from hetcal.paper.page.document import draw_pictures, page_text

__all__ = ["draw_pictures", "page_text"]
