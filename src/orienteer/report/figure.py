"""Figures of the page: a drawing, its caption, and links that save it for a paper."""

from __future__ import annotations

from orienteer.report.chart import Chart, chart_table, draw_chart, has_something
from orienteer.report.markup import Content, Markup, element, joined
from orienteer.report.png import data_link
from orienteer.report.svg import standalone
from orienteer.report.words import sentence, with_angstrom


def figure(name: str, svg: Markup, *caption: Content, table: str = "") -> Markup:
    """A drawing with its caption and links that save it.

    name : the name of the saved files, and the id of the figure.
    table : its numbers as CSV.
    """
    links = [_download(f"{name}.svg", standalone(svg), "image/svg+xml", "SVG")]
    if table:
        links.append(_download(f"{name}.csv", table, "text/csv", "CSV"))
    save = element("span", "Save as ", joined(links, ", "), ".", class_="downloads")
    return element("figure", svg, element("figcaption", *caption, " ", save), id=f"figure-{name}")


def chart_figure(chart: Chart, *caption: Content) -> Markup | None:
    """The figure of a chart; None if there is nothing to draw."""
    if not has_something(chart):
        return None
    return figure(chart.name, draw_chart(chart), *caption, table=chart_table(chart))


def figures(*parts: Markup | None) -> Markup:
    """Figures side by side, as many as fit."""
    there = [part for part in parts if part is not None]
    return element("div", *there, class_="figures") if there else Markup()


def missing(words: str) -> Markup:
    """The sentence that the page shows instead of a missing part."""
    return element("p", words, class_="missing")


def remarks(sentences: list[str]) -> Markup:
    """Further remarks as a list; empty if there are none."""
    points = [element("li", sentence(with_angstrom(words))) for words in sentences]
    return element("ul", *points) if points else Markup()


def facts(rows: list[tuple[str, Content]]) -> Markup:
    """A table of names and values."""
    body = [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in rows]
    return element("table", element("tbody", *body))


def _download(name: str, content: str, kind: str, words: str) -> Markup:
    return element("a", words, href=data_link(content.encode(), kind), download=name)
