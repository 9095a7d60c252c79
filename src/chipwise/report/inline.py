"""A matplotlib SVG as part of a page: no prolog, no style that reaches beyond it, ids that are its own."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
LEFT_OUT = (f"{{{SVG}}}metadata", f"{{{SVG}}}style")  # matplotlib's style would reach every element of the page
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def inline(svg: str, name: str) -> str:
    """The `svg` element alone, with every id prefixed by `name` so that several live on one page.

    >>> inline(f'<?xml version="1.0"?><svg xmlns="{SVG}" width="5pt" viewBox="0 0 5 5"><g id="a"/></svg>', "f")
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 5 5"><g id="f-a" /></svg>'
    """
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        for child in [each for each in parent if each.tag in LEFT_OUT]:
            parent.remove(child)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, f"{name}-{value}")
            elif key.endswith("href") and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            else:
                element.set(key, re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", value))
        if not (element.text or "").strip():
            element.text = None
        element.tail = None
    return ElementTree.tostring(root, encoding="unicode")
