"""How the documentation is built: ``sphinx-build -W docs docs/_build``."""

from hetcal import __version__

project = "hetcal"
author = copyright = "The hetcal developers"
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"hetcal {version}"
html_static_path = ["_static"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# What a package exports (its __all__) is its reference page; nothing is listed by hand.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False

# Scripts of examples/ that are no pages draw single pictures of other pages, or need a data folder.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "ignore_pattern": r"(^|/)(?!plot_)\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),
    "remove_config_comments": True,
}
