"""The words of a caption as in the COCO caption evaluation: a tokeniser without Java.

That evaluation runs Stanford's PTBTokenizer (CoreNLP 3.4.1, lower-cased) and drops punctuation. This module reproduces
the program's output: at every position the longest rule wins, the earlier one among equals. If Java is installed, the
tests compare both on every available real caption and question.
"""

from __future__ import annotations

import re

# Parentheses are not dropped: that evaluation drops "-LRB-" and "-RRB-", but its words are already lower-cased.
PUNCTUATION = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])

# Abbreviations keep their full stop: always, with a capital only, or before a number only.
ALWAYS = """adj adm adv al ala alex apr ariz assn asst atty aug ave bhd bldg blvd brig bros capt cf cie cmdr co col colo
    conn corp cos cpl ct dak dec dept det dr drs elec ens esq est etc ext feb fla fri ft ga gen gov govs hon inc
    ind insp intl invt jan jos jr jul jun kan kans ky lt ltd maj mar md mfg mich minn mlle mme mo mon mont mr mrs ms
    msgr mt mtg natl neb nev nov oct okla penn pfc ph plc ppte ppty pres prof pte ptes pty ptys pvt rd rep reps rev rt
    sen sens sep sept seq sfc sgt spc sq sr st ste supt sys tel tenn thu tue tues univ va vs vt wed wis wisc wm wyo"""
CAPITAL = "Ark Az Del Ill La Mass Miss Ore Pa Tex Wash ARK AZ DEL ILL LA MASS MISS ORE PA TEX WASH"
NUMBERED = "art ca fig figs no nos op pp prop"
# Words that show, after an initial, that its full stop ends a sentence: "vitamin C. The".
STARTERS = """A About According Additionally After An As At But Earlier He Her Here However If In It Last Many More Now
    Once One Other Our She Since So Some Such That The Their Then There These They This We What When While Yet You"""

SPELLED = {
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    '"': "''",
    "(": "-lrb-",
    ")": "-rrb-",
    "{": "-lcb-",
    "}": "-rcb-",
    "[": "-lsb-",
    "]": "-rsb-",
    "‐": "-",
    "‑": "-",
    "–": "--",
    "—": "--",
    "―": "--",
    "…": "...",
    "½": "1/2",
    "¼": "1/4",
    "¾": "3/4",
    "⅓": "1/3",
    "⅔": "2/3",
    "¢": "cents",
    "£": "#",
    "€": "$",
    "‹": "`",
    "›": "'",
    "«": "``",
    "»": "''",
    " ": "\xa0",
}
ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "''", "&apos;": "'", "&nbsp;": "\xa0", "&mdash;": "--"}


def _any(words: str) -> str:
    return "(?:" + "|".join(words.split()) + ")"


MARKS = "ªº²³¹⁰⁴-⁹₀-₉½¼¾⅐-⅞"  # tokens of one character, though Unicode counts them among letters and numbers
L = rf"[^\W\d_{MARKS}]"  # a letter
W = rf"[^\W_{MARKS}]"  # a letter or a digit
CLITIC = rf"(?:'(?:s|m|re|ve|ll|d)(?!{L})|’(?:s|m|re|ve|ll|d))"
NOT = r"n['’`‘]t"
WORD = rf"{W}+(?:(?<={L})[?!](?={L}){W}+)*"  # a ? inside a word counts as a letter lost in some encoding
COMPOUND = rf"{WORD}(?:[-_]{WORD})*"
STOPPED = rf"(?:(?:ph|ed)\.d|{_any(ALWAYS)}|(?-i:{_any(CAPITAL)})|[a-z](?:\.[a-z])+)"  # words that keep their full stop

RULES = [
    re.compile(rule, re.IGNORECASE)
    for rule in (  # a group is the token; the rest of the rule is a condition
        # words with an apostrophe
        CLITIC,
        rf"({COMPOUND}){CLITIC}",
        rf"({L}+(?<!n)){NOT}",
        NOT,
        rf"(?:(?:d|l|o|n|qu)['’]{W}|qu['’]|(?-i:[A-Z])['’]{L}){COMPOUND}|c['’](?:est|mon)|[en]?e['’]er|s['’]mores",
        rf"{L}+[aeiouy]['’][aeiou]{L}*|o['’`]clock",
        rf"([jdly]['’])(?:{L}|(?<=[jdlJDL].)(?!{W}))|(?:ol|somethin)['’]",
        r"['’](?:n['’]|n(?!\S)|em|till?|cause|[2-9]0s)|’n|['’]\d\d(?!\S)",
        r"('t)(?:is|was)",
        # words
        rf"(?:(can)not|(gon)na|(got)ta|(wan)na|(lem)me|(gim)me)(?!{W})",
        COMPOUND,
        r"[a-z0-9]+(?:[-_][a-z0-9]+)*(?:/[a-z0-9]+(?:[-_][a-z0-9]+)*){1,2}",
        rf"{L}{W}*(?:\.{L}{W}*)+(?:-{WORD})?",
        r"(?-i:[A-Z]+(?:&[A-Z]+)+)|[cf]\#|c\+\+",
        # full stops that belong to the word
        rf"{STOPPED}\.",
        rf"[a-z]\.(?!\s+(?-i:{_any(f'{STARTERS} {STARTERS.upper()}')})(?!\S))",
        rf"({_any(NUMBERED)}\.)\s+\d",
        rf"({L}+\.)[,;:]",
        rf"(?:{W}+|[a-z](?:\.[a-z])+)\.-(?:[a-z](?:\.[a-z])+\.|{WORD})",
        # numbers, addresses and symbols
        r"[-+]?(?:\d*(?:[.,:]\d+)+|\d+)",
        r"\d{1,4}[- ]\d{1,4}/\d{1,4}",
        r"(?:\(\d{2,3}\) ?|\+*(?:\d{2,4}[- ])?\d{2,4}[- ])\d{3,4}[- ]?\d{3,5}",
        r"(?-i:[A-Z]{1,2})\$",
        r"https?://[^\s\"<>|()]*[^\s\"<>|().,;:!?'-]",
        r"(?:[^\s\"'<>|.!?(){},\-$/]+\.)+(?:com|net|org|edu)/[^\s\"<>|()]*[^\s\"<>|().,;:!?'-]",
        r"[\w.+:-]+@[\w.-]*\w",
        rf"@[a-z_]\w*|\#{L}+",
        r"<(?:!-[^>]*|\?[^>]*|/?[a-z][\w:.-]*(?:\s[^<>]*)?/?)>",
        "|".join(ENTITIES) + r"|&\#\d+;",
        r"[<>]?[:;=][-'*]?(?-i:[()DPdpO@|\\[{\]])(?!\w)|[<>]?[:;=]o[()dp](?!\w)|\([\^>]_[\^<]\)|[\^>=~<-]_[\^<=~-]",
        r"''|``|[!?]+|-{2,}|\*+|_+|@+|<<|>>",
        r"\S",
    )
]
PLAIN = re.compile(r"[A-Za-z]+(?=[ ,]|$)")  # most words need no rules
SPLIT = frozenset(["cannot", "gonna", "gotta", "wanna", "lemme", "gimme"])


def tokenise(text: str) -> list[str]:
    """Lower-case words of a text, split as in the Penn Treebank, no punctuation: "Who's there?" is who, 's, there."""
    words = []
    at = 0
    while at < len(text):
        match = PLAIN.match(text, at)
        if match and match[0].lower() not in SPLIT:
            words.append(match[0])
        elif text[at].isspace() or text[at] > "\uffff":  # that program cannot read characters beyond, such as emoji
            at += 1
            continue
        else:
            match = max(filter(None, (rule.match(text, at) for rule in RULES)), key=re.Match.end)
            words.append(_normalise(match[match.lastindex or 0]))
        at += len(match[match.lastindex or 0])
    return [word for word in map(str.lower, words) if word not in PUNCTUATION]


def _normalise(token: str) -> str:
    """A token as that program writes it; apostrophes inside a word stay unchanged."""
    if token.lower() in ENTITIES:
        return ENTITIES[token.lower()]
    if token[0] in "-:;=" and len(token) > 1:  # a run of hyphens, or a smiley
        return "--" if set(token) == {"-"} else token.replace("(", "-lrb-").replace(")", "-rrb-")
    if re.search(r"\w", token) and not re.fullmatch(rf"{CLITIC}|{NOT}|.*[() ].*|.", token, re.IGNORECASE):
        return token
    return "".join(SPELLED.get(char, char) for char in token)
