"""Nothing from outside becomes a part of the page's own code."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from orienteer.report.markup import Markup, element, escaped, joined

TEXT = st.text(st.characters(exclude_characters="\r\x00", exclude_categories=["Cs", "Cc"]))


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(TEXT, TEXT)
def test_any_text_comes_back_as_it_was(text: str, value: str) -> None:
    reader = Reader()
    reader.feed(element("p", text, element("b", "x"), title=value))
    reader.close()
    assert reader.tags == [("p", {"title": value}), ("b", {})]
    assert reader.text == text + "x"


def test_markup_is_not_escaped_twice_and_text_always_once() -> None:
    inner = element("b", "<")
    assert inner == "<b>&lt;</b>"
    assert isinstance(inner, Markup)
    assert element("p", inner) == "<p><b>&lt;</b></p>"
    assert element("p", str(inner)) == "<p>&lt;b&gt;&amp;lt;&lt;/b&gt;</p>"
    assert joined([inner, "&"], ", ") == "<b>&lt;</b>, &amp;"


def test_what_looks_like_markup_after_a_change_is_text_again() -> None:
    assert not isinstance(element("b", "x").replace("x", "<y>"), Markup)


def test_attributes_are_named_as_html_names_them() -> None:
    assert element("input", name="map", checked=True, disabled=False, class_="a", aria_label="b") == (
        '<input name="map" checked class="a" aria-label="b">'
    )
    assert element("circle", r=2.0, cx=1 / 3, id=None) == '<circle r="2" cx="0.333333"></circle>'


def test_characters_that_no_page_may_hold_are_replaced() -> None:
    assert escaped("a\x00b\x1b\ud800\n") == "a\ufffdb\ufffd\ufffd\n"
