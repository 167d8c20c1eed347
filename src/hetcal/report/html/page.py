"""The page: sections in reading order, one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from hetcal.report import model
from hetcal.report.html import local_sections as local
from hetcal.report.html import sections as general
from hetcal.report.html.markup import Markup, el
from hetcal.report.html.pieces import Section


def page(report: model.Report) -> str:
    """Return the whole page."""
    style, script = _asset("style.css"), _asset("script.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="generator", content="hetcal"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", report.title),
        el("style", Markup(style)),
    )
    sections = [section for section in _sections(report) if section is not None]
    body = el(
        "body",
        el("a", "Skip to the verdict", href="#verdict", class_="skip"),
        _header(report, sections),
        el("main", [markup for _, _, markup in sections], id="top"),
        _footer(report),
        el("div", id="tip", role="status", hidden=True),
        el("script", Markup(_json_block(report)), type="application/json", id="report"),
        el("script", Markup(script)),
    )
    return "<!doctype html>\n" + el("html", head, body, lang="en") + "\n"


def notebook(report: model.Report) -> str:
    """Return the page in a frame of its own: it neither takes nor gives style to the notebook."""
    return el(
        "iframe",
        srcdoc=Markup(page(report)),
        sandbox="allow-scripts allow-modals",
        title=report.title,
        width="100%",
        height="720",
        frameborder="0",
    )


def _sections(r: model.Report) -> list[Section | None]:
    return [
        general.verdict(r),
        general.comparison(r),
        general.reliability(r),
        general.on_test(r),
        local.hidden(r),
        local.subgroups(r),
        local.support(r),
        local.weakest(r),
        local.learning(r),
        local.cost(r),
        general.warnings(r),
        general.settings(r),
    ]


def _header(r: model.Report, sections: Sequence[Section]) -> Markup:
    d = r.data
    facts = [f"{d.n_items:,} items", f"{d.n_features} features", f"{len(d.classes)} classes"]
    if d.n_groups is not None:
        facts.append(f"{d.n_groups:,} groups")
    if d.n_test is not None:
        facts.append(f"{d.n_test:,} new items")
    if d.order != "shuffled":
        facts.append(d.order)
    links = [el("a", title, href=f"#{key}") for key, title, _ in sections]
    return el(
        "header",
        el(
            "div",
            el(
                "div",
                el("p", "hetcal", class_="brand"),
                el("h1", r.title),
                el("p", " · ".join(facts), class_="facts"),
            ),
            el(
                "button",
                "Dark",
                type="button",
                id="theme",
                class_="quiet",
                aria_label="Switch between light and dark",
            ),
            class_="masthead",
        ),
        el("nav", links, aria_label="Sections"),
    )


def _footer(r: model.Report) -> Markup:
    return el("footer", el("p", f"hetcal {r.versions.get('hetcal', '')} · {r.created}"))


def _json_block(report: model.Report) -> str:
    """Return JSON in ASCII that no HTML parser can take for markup."""
    text = json.dumps(report.to_dict(), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _asset(name: str) -> str:
    return files("hetcal.report.html").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
