"""The page: one self-contained file, from templates that escape whatever they print."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hetcal.report import model
from hetcal.report.html import filters, frames
from hetcal.report.html.summary import summary


def page(report: model.Report) -> str:
    """Return the whole page."""
    scopes = {row.label: row.scope for row in report.comparison}
    return _rendered("page.html.jinja", r=report, summary=summary(report), scopes=scopes)


def monitor_page(report: Any) -> str:
    """Return the whole page of a :class:`~hetcal.report.monitor_report.MonitorReport`."""
    return _rendered("monitor/page.html.jinja", r=report)


def _rendered(template: str, **values: Any) -> str:
    """Return a page that lets nothing in but its own style and script."""
    style, script = _asset("style.css"), _asset("script.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    own = {"policy": policy, "style": Markup(style), "script": Markup(script)}
    return _environment().get_template(template).render(**values, **own)


def notebook(report: model.Report) -> str:
    """Return the page in a frame of its own: it neither takes nor gives style to the notebook."""
    template = _environment().get_template("notebook.html.jinja")
    return template.render(title=report.title, page=page(report))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hetcal.report.html"),
        autoescape=True,
        finalize=filters.visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters.FILTERS
    environment.globals |= {"frames": frames, "columns": filters.columns}
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


@cache
def _asset(name: str) -> str:
    return files("hetcal.report.html").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
