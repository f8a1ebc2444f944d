"""TeX and Markdown as the plain text that they show."""

from __future__ import annotations

import re

__all__ = ["plain_text"]

_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5",
    "⅘": "4/5", "⅙": "1/6", "⅚": "5/6", "⅐": "1/7", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
    "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")

_TEX = re.compile(
    r"\\[dtc]?frac\s?(?:\{(?P<top>[^{}]{1,20})\}|(?P<top1>[0-9]))\s?"
    r"(?:\{(?P<bottom>[^{}]{1,20})\}|(?P<bottom1>[0-9])(?![0-9]))"
    r"|\{\s?(?P<over>[^{}\\]{1,20})\\over(?![a-zA-Z])(?P<under>[^{}\\]{1,20})\}"
    r"|\\(?:text|textbf|textit|textrm|textsf|textnormal|texttt|emph|mathrm|mathbf|mathit|mathsf|mathtt"
    r"|operatorname|underline|boldsymbol|bm|mbox|hbox|bf|rm|displaystyle|large|Large|LARGE|huge|Huge"
    r"|left|right|[bB]igg?[lr]?|qquad|quad|(?:text)?color\s?\{[a-zA-Z]{1,20}\})(?![a-zA-Z])"
    r"|(?P<comma>\{,\}|,\\!)"
    r"|\^\s?\{?\s?\\circ\s?\}?(?P<degree>)|\\degree(?![a-zA-Z])(?P<degrees>)"
    r"|\\[()\[\]]"
    r"|\\(?P<symbol>[%$#&])"
    r"|\\(?:[,;:! ]|quad\b)"
    r"|\\(?P<times>times|cdot)(?![a-zA-Z])"
    r"|\\(?P<about>approx)(?![a-zA-Z])"
    r"|\\(?P<ne>neq?)(?![a-zA-Z])"
    r"|(?P<vulgar>[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒])"
    r"|(?P<raised>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+)(?!/)"
    r"|<[/|]?(?!su[bp]|del|s[\s>]|strike)[a-zA-Z]\w{0,20}\s?[/|]?>(?P<tag>)"
    r"|<<[^<>\n]{0,100}>>"
    r"|\$\$|\$(?=\s*[-\\(a-zA-Z{*]|\s*$)"
    r"|(?<=[0-9)}%])\$"
    r"|\*\*|__|[`{}~∎■□]"
)
_MARKED = re.compile(r"[<\\$*_`{}~^]|[^\x00-\x7f]")


def plain_text(text: str) -> str:
    """Replace TeX and Markdown by the plain text that they show; nothing is evaluated."""
    return _TEX.sub(_shown, text) if _MARKED.search(text) else text


def _shown(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind is None:
        return " "
    if kind in {"bottom", "bottom1"}:
        top = match["top"] or match["top1"]
        return f" {top.strip()}/{(match['bottom'] or match['bottom1']).strip()} "
    if kind == "under":
        return f" {match['over'].strip()}/{match['under'].strip()} "
    if kind == "vulgar":
        return f" {_VULGAR[match['vulgar']]} "
    if kind == "raised":
        return "^" + match["raised"].translate(_RAISED)
    if kind == "symbol":
        return match["symbol"]
    return {"comma": ",", "times": "\u00d7", "about": "≈", "ne": "≠", "tag": "  "}.get(kind, "°")
