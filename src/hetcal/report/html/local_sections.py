"""The sections on what differs between items: who, where, how well supported, at what cost."""

from __future__ import annotations

from hetcal.report import model
from hetcal.report.html import charts
from hetcal.report.html.markup import Markup, el, join
from hetcal.report.html.pieces import Section, legend, optional, p_words, section
from hetcal.report.html.tables import cell, numbers_of, table


def hidden(r: model.Report) -> Section | None:
    """Return hidden heterogeneity along p, or by predicted class and confidence."""
    h = r.hidden
    if h is None:
        return section(
            "hidden",
            "Hidden heterogeneity",
            el("p", "Too few items to measure it.", class_="empty"),
        )
    verdict = "is real" if h.p_value < 0.05 else "could be chance"
    lead = (
        "How much better a model that sees the features does among items with the same "
        "probability. The global part is what one correction for everybody repairs; the local "
        "part only shows when the features are looked at."
    )
    facts = el(
        "dl",
        [
            el("div", el("dt", name), el("dd", value), el("dd", note, class_="note"), class_="tile")
            for name, value, note in (
                ("global part", f"{h.global_part:.4f}", "a global map can repair it"),
                ("local part", f"{h.local_part:.4f}", "only a local one can"),
                ("is it real?", p_words(h.p_value), f"that nothing is hidden: it {verdict}"),
            )
        ],
        class_="tiles three",
    )
    if h.kind == "along p":
        picture = el(
            "figure",
            charts.hidden_along_p(h, r.data.event)
            if h.cells
            else el("p", "Too few items near any probability.", class_="empty"),
            legend(("global", "global part"), ("local", "local part, with its 95 % band")),
            _cells(h),
            class_="wide",
        )
    else:
        picture = join(_heat(h), _cells(h))
    note = f"Measured on {h.n_items:,} items; {h.covered:.0%} of them have enough neighbours."
    aside = el("div", facts, el("p", note, class_="note"), class_="aside")
    parts = el("div", picture, aside, class_="beside") if h.kind == "along p" else [aside, picture]
    return section("hidden", "Hidden heterogeneity", parts, lead=lead)


def _cells(h: model.Hidden) -> Markup:
    rows = []
    for c in h.cells:
        where = c.name if c.at is not None else f"{c.name}, {_range(c)}"
        rows.append(
            [
                cell(where, c.at if c.at is not None else where, header=True),
                cell(optional(c.hh_local, 4), c.hh_local),
                cell(optional(c.hh_global, 4), c.hh_global),
                cell(optional(c.standard_error, 4), c.standard_error),
                cell(optional(c.q_value, 3), c.q_value),
                cell(f"{c.count:,}", c.count),
            ]
        )
    heads = ["where", "local part", "global part", "standard error", "q", "items near"]
    return numbers_of("Hidden heterogeneity", heads, rows)


def _heat(h: model.Hidden) -> Markup:
    """Return predicted classes against ranges of confidence, darker where more is hidden."""
    top = max([c.hh_local or 0 for c in h.cells] or [0]) or 1.0
    ranges = sorted({(c.low or 0.0, c.high or 1.0) for c in h.cells})
    found = {(c.name, c.low or 0.0): c for c in h.cells}
    rows = []
    for name in dict.fromkeys(c.name for c in h.cells):
        line = [cell(name, name, header=True)]
        for low, _ in ranges:
            c = found.get((name, low))
            if c is None or c.hh_local is None:
                text = "no item" if c is None else f"{c.count:,} items, too few"
                line.append(cell(el("span", text, class_="error")))
                continue
            shade = min(int(5 * max(c.hh_local, 0) / top), 4)
            both = join(
                f"{c.hh_local:.4f}",
                el("span", f"global {optional(c.hh_global, 4)}, {c.count:,} items", class_="error"),
            )
            line.append(cell(both, c.hh_local, class_=f"heat h{shade}"))
        rows.append(line)
    heads = ["predicted class", *[f"confidence {low:g} to {high:g}" for low, high in ranges]]
    return table(
        "Local part of hidden heterogeneity by predicted class and confidence",
        heads,
        rows,
        key="cells-table",
    )


def _range(c: model.HiddenCell) -> str:
    return f"confidence {c.low or 0:g} to {c.high or 1:g}"


def subgroups(r: model.Report) -> Section:
    """Return who gets wrong probabilities."""
    found: object
    if r.subgroups:
        found = _groups_table(
            "Sub-populations that were found", r.subgroups, r.data, "subgroups-table"
        )
    else:
        found = el("p", "No sub-population was found and confirmed.", class_="empty")
    asked = None
    if r.by:
        asked = join(
            el("h3", "The groups you asked for"),
            _groups_table("Groups that were asked for", r.by, r.data, "by-table"),
        )
    lead = (
        "Who gets wrong probabilities. Rules were found on one half of the items and measured on "
        "the other. The ring is what the model says on average, the dot what happened, with its "
        "95 % interval."
    )
    key = legend(("local", "a global map does not repair it"), ("global", "a global map does"))
    return section("subgroups", "Sub-populations", found, asked, key, lead=lead)


def _groups_table(title: str, groups: list[model.Subgroup], data: model.Data, key: str) -> Markup:
    low = min(min(g.low, g.predicted) for g in groups)
    high = max(max(g.high, g.predicted) for g in groups)
    several = data.positive is None
    rows = []
    for g in groups:
        line = [cell(g.rule, g.rule, header=True, class_="rule")]
        if several:
            line.append(cell(g.label, g.label))
        line += [
            cell(charts.interval(g, (low, high)), None, class_="graphic"),
            cell(f"{g.predicted:.2f}", g.predicted),
            cell(f"{g.observed:.2f}", g.observed),
            cell(f"{g.low:.2f} to {g.high:.2f}", g.low),
            cell(f"{g.count:,}", g.count),
            cell(f"{g.gain:.4f}", g.gain),
            cell(f"{g.after_global_map:+.2f}", g.after_global_map),
        ]
        rows.append(line)
    heads: list = [
        "who",
        *(["class"] if several else []),
        ("said and observed", None),
        "said",
        "observed",
        "95 % interval",
        "items",
        "Brier gain",
        "gap after global map",
    ]
    return table(title, heads, rows, key=key)


def support(r: model.Report) -> Section | None:
    """Return how much calibration data stands behind the items."""
    s = r.support
    if s is None:
        return None
    kinds = ("raw", "test")
    key = legend(*[(kinds[k], h.name) for k, h in enumerate(s.histograms)])
    facts = [
        el(
            "div",
            el("dt", h.name),
            el("dd", f"{h.share_low:.1%} low"),
            el("dd", f"median support {h.median:.3g}", class_="note"),
            class_="tile",
        )
        for h in s.histograms
    ]
    rows = [
        [
            cell(f"{h.edges[k]:.3g} to {h.edges[k + 1]:.3g}", h.edges[k], header=True),
            *[cell(f"{other.counts[k]:,}", other.counts[k]) for other in s.histograms],
        ]
        for h in s.histograms[:1]
        for k in range(len(h.counts))
    ]
    lead = (
        "How many calibration items resemble an item: the sum of similarities. Low means below "
        "what nineteen of twenty calibration items have; probabilities of such items rest on "
        "little."
    )
    figure = el(
        "figure",
        charts.support(s),
        key,
        numbers_of("Support", ["support", *[h.name for h in s.histograms]], rows),
        class_="wide",
    )
    aside = el("dl", facts, class_="tiles three aside")
    return section("support", "Support", el("div", figure, aside, class_="beside"), lead=lead)


def weakest(r: model.Report) -> Section | None:
    """Return the items that resemble the calibration items least."""
    if not r.weakest:
        return None
    names = list(dict.fromkeys(name for item in r.weakest for name in item.features))
    rows = []
    for item in r.weakest:
        line = [
            cell(f"{item.row:,}", item.row, header=True),
            cell(f"{item.support:.2f}", item.support),
            cell(f"{item.predicted:.2f}", item.predicted),
            cell(f"{item.calibrated:.2f}", item.calibrated),
        ]
        if r.data.positive is None:
            line.append(cell(item.label, item.label))
        line += [cell(item.features.get(name, ""), item.features.get(name, "")) for name in names]
        rows.append(line)
    heads = [
        "row",
        "support",
        "said",
        "after (hybrid)",
        *(["class"] if r.data.positive is None else []),
        *names,
    ]
    lead = (
        f"Rows of the {r.weakest[0].table} (counted from 0) that resemble the calibration items "
        "least. Look at them before relying on their probabilities."
    )
    return section(
        "weakest",
        "Least support",
        table("Items with least support", heads, rows, key="weakest-table"),
        lead=lead,
    )


def learning(r: model.Report) -> Section | None:
    """Return the learning curve, where it was measured."""
    if not r.learning_curve:
        return None
    scopes = {row.method: row.scope for row in r.comparison}
    rows = [
        [
            cell(c.label, c.label, header=True),
            cell(f"{p.size:,}", p.size),
            cell(f"{p.value:.4f}", p.value),
            cell(optional(p.standard_error, 4), p.standard_error),
        ]
        for c in r.learning_curve
        for p in c.points
    ]
    said = [el("li", c.more_data) for c in r.learning_curve if c.more_data]
    key = legend(*[(charts.SCOPE_CLASS[scopes[c.method]], c.label) for c in r.learning_curve])
    figure = el(
        "figure",
        charts.learning(r.learning_curve, scopes),
        key,
        numbers_of("Learning curve", ["method", "items", "Brier", "standard error"], rows),
        class_="wide",
    )
    lead = "Brier score on items that were held out, at growing numbers of calibration items."
    aside = el("ul", said, class_="facts-list aside")
    return section(
        "learning", "Learning curve", el("div", figure, aside, class_="beside"), lead=lead
    )


def cost(r: model.Report) -> Section | None:
    """Return what the decisions cost, where costs were given."""
    c = r.cost
    if c is None:
        return None
    rows = [
        [
            cell(row.label, row.label, header=True),
            cell(
                join(
                    f"{row.cost:.4f}",
                    el("span", f"{row.low:.4f} to {row.high:.4f}", class_="error"),
                ),
                row.cost,
            ),
        ]
        for row in c.rows
    ]
    priced = table(
        "Expected cost", ["method", "cost per item, 95\u00a0% interval"], rows, key="cost-table"
    )
    parts: object = priced
    if c.curves:
        scopes = {row.label: charts.SCOPE_CLASS[row.scope] for row in r.comparison}
        kinds = [scopes.get(curve.name, "everyone") for curve in c.curves]
        key = legend(*[(k, curve.name) for k, curve in zip(kinds, c.curves, strict=True)])
        numbers = [
            [
                cell(f"{t:.2f}", t, header=True),
                *[cell(f"{curve.net_benefit[i]:.4f}", curve.net_benefit[i]) for curve in c.curves],
            ]
            for i, t in enumerate(c.thresholds)
            if round(100 * t) % 5 == 0
        ]
        figure = el(
            "figure",
            charts.decision(c, kinds),
            key,
            numbers_of("Decision curve", ["threshold", *[k.name for k in c.curves]], numbers),
            class_="wide",
        )
        parts = el("div", figure, el("div", priced, class_="aside"), class_="beside")
    lead = (
        "What the decisions cost that the probabilities recommend, each the cheapest by its own "
        "account. Net benefit is hits less needless actions at the odds of the threshold; higher "
        "is better."
    )
    return section("cost", "Cost", parts, lead=lead)
