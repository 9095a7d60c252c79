"""Attribute values: numbers, names, strings, lists and nested settings, decoded from their text when asked for."""

from __future__ import annotations

import json
import re
from typing import Any

from chipwise.compiled.hlo.lexical import NAME, STRING, VALUE, compiled

_KEY = compiled(rf"\s*(?:({NAME})=|({STRING})\s*:)\s*")
_ITEM = compiled(rf"\s*({VALUE})")
_GAP = compiled(r"(?:\s|,|/\*[^*]*\*/)*")
_INT = re.compile(r"-?\d{1,19}$")
_ESCAPE = re.compile(r"\\(n|t|r|[0-7]{3}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}


def unquote(text: str) -> str:
    r"""The string inside C-style quotes.

    >>> unquote(r'"a\"b\\n"')
    'a"b\\n'
    """
    inner = text[1:-1]
    return _ESCAPE.sub(_unescape, inner) if "\\" in inner else inner


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code in _PLAIN:
        return _PLAIN[code]
    if len(code) == 3:
        return chr(int(code[1:], 16)) if code[0] == "x" else chr(int(code, 8))
    return code


def decode(text: str) -> Any:
    """The value `text` spells: int, bool, str, list or dict; text of another form comes back as it is.

    >>> decode("{{0,1},{2,3}}")
    [[0, 1], [2, 3]]
    >>> decode('{op_name="a/b" source_line=3}')
    {'op_name': 'a/b', 'source_line': 3}
    >>> decode("[8,4]<=[32]")
    '[8,4]<=[32]'
    """
    if text[:1] == "{" and text[-1:] == "}":
        members = _members(text)
        return text if members is None else members
    if text[:1] == '"' and text[-1:] == '"' and len(text) > 1:
        return unquote(text)
    if _INT.match(text):
        return int(text)
    if text in ("true", "false"):
        return text == "true"
    return text.removeprefix("%")


def _members(text: str) -> dict[str, Any] | list[Any] | None:
    """What a group in braces holds; None where it is neither a list nor settings."""
    named: dict[str, Any] = {}
    listed: list[Any] = []
    end = len(text) - 1
    position = _skip(text, 1)
    while position < end:
        key = _KEY.match(text, position, end)
        item = _ITEM.match(text, key.end() if key else position, end)
        if item is None:
            return None
        if key:
            named[key[1] or unquote(key[2])] = decode(item[1])
        else:
            listed.append(decode(item[1]))
        position = _skip(text, item.end())
    if named and listed:
        return None
    return named or listed


def _skip(text: str, position: int) -> int:
    match = _GAP.match(text, position)
    return match.end() if match else position


def decode_config(text: str) -> Any:
    """A backend configuration: JSON, JSON in quotes (as older compilers print it), or the bare string."""
    if text[:1] == '"':
        text = unquote(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return decode(text) if text[:1] == "{" else text
