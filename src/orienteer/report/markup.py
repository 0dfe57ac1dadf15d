"""HTML and SVG from Python: whatever is not markup already is escaped when it is put into an element.

Names of samples, files and machines come from outside.  Since only :class:`Markup` goes in as it is, and only
:func:`element` and :func:`joined` make it, a name can never become a part of the page's own code.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

# Elements that have no end in HTML; SVG shapes are closed all the same.
_VOID = {"br", "col", "hr", "img", "input", "link", "meta"}
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class Markup(str):
    """Text that is HTML or SVG already."""

    __slots__ = ()


Content: TypeAlias = "str | Markup"
Value: TypeAlias = "str | int | float | bool | None"


def element(name: str, /, *content: Content, **attributes: Value) -> Markup:
    """An element with what is in it.

    attributes : ``class_`` stands for ``class``, and underscores for hyphens; True is an attribute without a
        value, None and False are none at all; numbers are written short.

    >>> element("p", "a < b ", element("b", "c"), class_="note", id=None)
    '<p class="note">a &lt; b <b>c</b></p>'
    >>> element("img", src="x.png", alt='a "name"')
    '<img src="x.png" alt="a &quot;name&quot;">'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def joined(content: Iterable[Content], between: str = "") -> Markup:
    """Several pieces, one after the other; texts among them are escaped.

    >>> joined(["<a>", element("b", "c")])
    '&lt;a&gt;<b>c</b>'
    """
    return Markup(between.join(part if isinstance(part, Markup) else escaped(part) for part in content))


def escaped(text: str) -> Markup:
    """The text as it must stand in HTML; characters that no page may hold are shown as a question mark."""
    return Markup(html.escape(_UNPRINTABLE.sub("\ufffd", text), quote=True))


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{escaped(text)}"'
