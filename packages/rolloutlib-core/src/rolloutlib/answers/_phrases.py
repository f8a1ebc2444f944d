"""What the words and signs around a number make of it."""

from __future__ import annotations

import re

__all__ = [
    "ALTERNATIVE",
    "BETWEEN",
    "BOUND",
    "CONDITION",
    "JOINED",
    "MINUS",
    "NEGATED",
    "NOT",
    "NO_UNIT",
    "OPERAND",
    "OPERATED",
    "OPERATOR",
    "UNIT",
]

_WORD_NUMBERS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty"
    "|seventy|eighty|ninety|hundred|thousand|million|billion|dozen"
)

# Before the number, or for NOT before a box. All of these are matched in lower case, in a stretch of
# bounded length.
NEGATED = re.compile(
    r"""(?:\b(?:not|never|neither|nor|hardly|cannot|except|besides|unlike|isnt|wasnt|no\slonger)\b | n't\b
      | \b(?:rather|other|different)\s(?:than|from)\b | \b(?:instead\sof|anything\sbut|far\sfrom)\b
      | \bcould\shave\sbeen\b | \b(?:unlikely|impossible|wrong|incorrect)\b
      | \b(?:nicht|kein|pas|não|no\s(?:es|son)|\u043d\u0435)\b | non\sè | 不 | 没有 | 未)
      (?:\s(?!(?:is|are|was|were|equals|has|makes|gives)\b)[a-z']{1,20}){0,4} [\s$("]*$
    | (?:\b(?:not|cannot)|n't)\s(?:think|believe|say|mean|sure|certain|conclude|know|tell)\b
      (?:\s[a-z']{1,20}){0,5} [\s$("]*$""",
    re.VERBOSE,
)
NOT = re.compile(
    r"""(?:\b(?:not|never|cannot|neither|nor|rather\sthan|instead\sof|other\sthan|anything\sbut)\b | n't\b)
    (?:\s(?:be|been|equal|to|the|answer|exactly|simply|a|just))* [\s$("]*$""",
    re.VERBOSE,
)
BOUND = re.compile(
    r"""(?:\b(?:more|less|greater|fewer|higher|lower|bigger|smaller|larger)\sthan(?:\sor\sequal\sto)?
      | \b(?:at\s(?:least|most)|over|under|above|below|almost|nearly|close\sto|up\sto|exceeds|exceeding)
      | \b(?:divisible\sby|out\sof
          |(?:multiple|factor|divisor|power|root|half|third|quarter|percent|cube|square)s?\sof)
      | \b(?:e\.g\.|for\s(?:example|instance),?|such\sas|any(?:thing)?)
      | [\u00b1<>≤≥≠] | \+-|\+/-
    )[\s$]*$""",
    re.VERBOSE,
)
OPERATOR = re.compile(
    rf"""(?:\b(?:half|twice|double|triple|thrice|times|plus|modulo|mod|divided\sby|multiplied\sby
          |{_WORD_NUMBERS})(?:\s(?:of|and|a|the))?\s
      | (?:[a-z0-9)}}\]]\s?[-+] | [\^_*/\u00d7÷√·∙π!\\])\s?(?:\(\s?)?(?<!\*\s)
      | \| | [a-z]\(\s?
      | \\(?!(?:therefore|implies|(?:long)?rightarrow|because|iff|colon)\b)[a-z]{{1,20}}\s*[\[(]?
    )$""",
    re.VERBOSE,
)
MINUS = re.compile(r"\b(?:negative|minus)\s?$")
BETWEEN = re.compile(r"\bbetween\b[^0-9]{0,40}[0-9][^.]{0,60}\band\b[^0-9]{0,20}$")

# After it.
OPERAND = re.compile(
    r"\s*(?:[a-z%]{1,15}\s*){0,3}(?:[*/+\u00d7÷·^!-]|\\[a-z]|x\s|(?:plus|minus|times|of|divided|multiplied)\b)"
)
OPERATED = re.compile(
    r"""\s?[\^√π\u00d7÷·∙] | \s?\\(?!(?:text|mathrm|quad|to|implies|rightarrow)\b)
    | \s?\*\s?[0-9a-z(\\] | \s?/\s?(?:[0-9(\\]|sqrt|root|[a-z]{1,2}\b(?<!hr|kg|lb|/h))
    | \s?\+ | -\s*$ | \s?-\s?[0-9(\\] | \s?:\s?[0-9] | \s?x\s?[0-9] | \s?[≤≥<>±≠]
    | ![0-9!)/*}$] | !\s[a-z] | \( | [({_']\s?[0-9]
    | [a-z]\b(?<![gmhsla]) | h\s?[0-9] | [cp][0-9] | [a-z_]{1,3}[0-9]{2} | [kb]n?\b | m[nl]n?\b | mio\b

    | \s(?:times|plus|minus|multiplied|divided|squared|cubed|factorial|choose|modulo|mod|pi)\b
    | \s(?:over|point)\s[0-9] | \sto\sthe\s[a-z]+\spower
    | \sand\s(?:a|one|two|three)\s(?:half|quarter|third|fifth)
    | \s?%?\s?(?:percent\s)?of\s(?:the\s)?[0-9$]
    | \s(?:[a-z]{1,15}\s){0,2}(?:more|less|fewer|greater|higher|lower)\s(?:[a-z]{1,15}\s)?than\s[^.,]{0,20}[0-9]
    | \s(?:is|was)\s(?:not|never)\b | \sisn't""",
    re.VERBOSE,
)
_VARIABLE = r"[a-z](?:_\s?[a-z0-9])?\s?=\s?"
JOINED = re.compile(
    rf"""[\s,;/|&~:.>→⇒-]*
    | \s?[,;/|&~:.>→⇒\n-][\s,;/|&~:.>→⇒-]*{_VARIABLE}
    | [\s,;]*\(?[a-h][).:]\s* | \)\s*\(?

    | [\s)]*(?:[a-z%°$€£]{{1,20}},?\s)?[\s,;()/]*
      (?:and/or|or|and|to|through|till|until|maybe|perhaps|possibly|alternatively|vs|versus
        |und|oder|y|o|et|ou|和|或|及)\b
      (?:\s(?:maybe|perhaps|possibly|even|about|also|else|just))? [\s(:$-]* (?:{_VARIABLE})?

    | \s?(?:dollars?|euros?|pounds?|hours?|hrs?|h|minutes?|mins?|days?|weeks?|months?|years?
        |feet|foot|ft|miles?|kg|km|lbs?|m|cm|meters?|\u00b0|'|remainder|r)[,\s]{{0,2}}""",
    re.VERBOSE,
)
ALTERNATIVE = re.compile(r"\s?(?:[a-z$€%]{1,15}\s)?\(?(?:or|oder|或)\b")
CONDITION = re.compile(
    r",\sso\b|\b(?:or|unless|else|otherwise|alternatively|if|but\s(?:could|might|may|maybe|perhaps|possibly))\b"
)
UNIT = re.compile(
    r"""(?:°\s{0,4}[cf]\b | [\s°:;.,)\]"'/-] | \((?=[a-z\s]{1,30}\))
      | (?:[^\W\d_ªº]{2,}|[gmhsla€£¥₹₩₽¢$](?![^\W\d_])) (?:\s?\^\s?[23](?![0-9]))? [23]?(?![0-9])
    )*""",
    re.VERBOSE,
)
NO_UNIT = re.compile(
    r"\b(?:or|and|to|not|pi|sqrt|root|factorial|choose|mod|modulo|plus|minus|times|over|approximately|is|was"
    r"|are|wrong|incorrect|if|but|maybe|perhaps|than|squared|cubed|between|unless|k|bn|mn|mln|mio|tn)\b|n't\b"
)
