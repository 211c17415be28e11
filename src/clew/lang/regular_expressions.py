"""Regular expressions that mean the same to Java, Python and RE2, and whose search takes bounded time.

What is read here is written again in a form that has one meaning only: `\\d` as `[0-9]`, `.` as every character but a
line feed, `$` as the end of the text. Everything in which the engines differ is refused: lookaround, references to
groups, word boundaries, flags, possessive quantifiers.

Java and Python try alternatives one after the other. So that this takes no longer than the square of the text, a
pattern may leave open only once (twice, if it begins with ^) how far a repetition without an upper end goes, and never
inside of another repetition. How far it goes is not open where the next character decides: in `[0-9]+-` it is certain.
"""

from functools import lru_cache

from clew.deferred import dataclass

MOST_MATCHED = 4_000
"""Characters of a text that is searched; longer texts are an error, in both evaluators."""
_LONGEST = 1_000
_MOST_REPEATED = 100
_MOST_OPEN_ENDS = 2
_MOST_CHOICES = 64
"""Ways to go on that bounded repetitions and alternatives may leave open, multiplied."""
_DEEPEST = 20
_LAST = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]

_DIGITS: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 13), (32, 32))
_NAMED = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class PatternProblem(ValueError):
    """Why a pattern is not taken; `hint` says what to write instead."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class _Characters:
    """One character out of some ranges, or of none of them."""

    ranges: Ranges
    negated: bool = False

    @property
    def set(self) -> Ranges:
        return _complement(self.ranges) if self.negated else self.ranges


@dataclass(frozen=True, slots=True)
class _Sequence:
    items: tuple["_Node", ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple["_Node", ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    item: "_Node"
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True, slots=True)
class _Group:
    item: "_Node"
    captures: bool


@dataclass(frozen=True, slots=True)
class _Edge:
    at_end: bool


_Node = _Characters | _Sequence | _Choice | _Repeat | _Group | _Edge


@dataclass(frozen=True, slots=True)
class RegularExpression:
    """A pattern that was found to be good, in the form that has one meaning."""

    in_java: str
    in_python: str
    groups: int
    can_be_empty: bool


@lru_cache(maxsize=256)
def regular_expression(pattern: str) -> RegularExpression:
    """What a pattern means. PatternProblem says why it is not taken."""
    if len(pattern) > _LONGEST:
        raise PatternProblem(f"a pattern has at most {_LONGEST:,} characters")
    reader = _Reader(pattern)
    node = reader.whole()
    _Openness(anchored=_is_anchored(node)).check(node)
    return RegularExpression(_written(node, r"\z"), _written(node, r"\Z"), reader.groups, _is_nullable(node))


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern, self._at, self._depth, self.groups = pattern, 0, 0, 0

    def whole(self) -> _Node:
        node = self._choice()
        if self._at < len(self._pattern):
            raise PatternProblem("a ) closes nothing", "write \\) for a parenthesis itself")
        return node

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._next()
        self._at += 1
        return character

    def _choice(self) -> _Node:
        options = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else _Choice(tuple(options))

    def _sequence(self) -> _Node:
        items = list[_Node]()
        while self._next() not in {"", "|", ")"}:
            items.append(self._repeated(self._atom()))
        return items[0] if len(items) == 1 else _Sequence(tuple(items))

    def _atom(self) -> _Node:
        character = self._take()
        match character:
            case ".":
                return _Characters(((10, 10),), negated=True)
            case "^" | "$":
                return _Edge(at_end=character == "$")
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case "*" | "+" | "?" | "{":
                raise PatternProblem(
                    f"there is nothing before {character} to repeat", f"write \\{character} for itself"
                )
            case "}" | "]":
                raise PatternProblem(f"a {character} closes nothing", f"write \\{character} for itself")
            case _:
                return _one(character)

    def _group(self) -> _Node:
        captures = self._next() != "?"
        if not captures and self._pattern[self._at : self._at + 2] != "?:":
            problem = "of the groups that begin with (? only (?: ... ) means the same everywhere"
            raise PatternProblem(problem, "write LOWER(text) where case does not matter")
        self._at += 0 if captures else 2
        self.groups += captures
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternProblem(f"groups are nested more than {_DEEPEST} deep")
        inner = self._choice()
        if self._take() != ")":
            raise PatternProblem("a ( is not closed", "write \\( for a parenthesis itself")
        self._depth -= 1
        return _Group(inner, captures)

    def _escape(self) -> _Characters:
        character = self._take()
        if character.lower() in _NAMED and character:
            return _Characters(_NAMED[character.lower()], negated=character.isupper())
        return _one(_escaped(character))

    def _class(self) -> _Characters:
        negated = self._next() == "^"
        self._at += negated
        ranges = list[tuple[int, int]]()
        while True:
            character = self._take()
            if character == "]" and ranges:
                return _Characters(_merged(ranges), negated)
            if character in {"", "]", "["}:
                raise PatternProblem("a [ ... ] is not closed, or is empty, or has a [ in it", "write \\[ and \\]")
            if character == "\\" and self._next() in _NAMED and self._next():
                ranges += _NAMED[self._take()]
                continue
            first = _escaped(self._take()) if character == "\\" else character
            ranges.append((ord(first), ord(self._end_of_range(first))))

    def _end_of_range(self, first: str) -> str:
        if self._next() != "-" or self._pattern[self._at + 1 : self._at + 2] in {"", "]"}:
            return first
        self._at += 1
        character = self._take()
        last = _escaped(self._take()) if character == "\\" else character
        if character == "[" or ord(last) < ord(first):
            raise PatternProblem(f"{first}-{last} is not a range of characters")
        return last

    def _repeated(self, item: _Node) -> _Node:
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._next())
        if self._next() == "{":
            bounds = self._counts()
        elif bounds is not None:
            self._at += 1
        if bounds is None:
            return item
        if isinstance(item, _Edge):
            raise PatternProblem("^ and $ cannot be repeated")
        lazy = self._next() == "?"
        self._at += lazy
        if self._next() in {"*", "+", "?", "{"} and self._next():
            raise PatternProblem("a repetition follows a repetition", "put the first one into (?: ... )")
        return _Repeat(item, *bounds, lazy)

    def _counts(self) -> tuple[int, int | None]:
        end = self._pattern.find("}", self._at)
        least, comma, most = self._pattern[self._at + 1 : max(end, 0)].partition(",")
        numbers = [number for number in (least, most) if number]
        if end < 0 or not least or any(not (n.isascii() and n.isdigit() and len(n) < 4) for n in numbers):
            raise PatternProblem("a repetition in braces is {2}, {2,} or {2,5}", "write \\{ for a brace itself")
        self._at = end + 1
        upper = None if comma and not most else int(most or least)
        if max(map(int, numbers)) > _MOST_REPEATED or (upper is not None and upper < int(least)):
            raise PatternProblem(f"a repetition in braces goes up to {_MOST_REPEATED}, and not down")
        return int(least), upper


def _one(character: str) -> _Characters:
    return _Characters(((ord(character), ord(character)),))


def _escaped(character: str) -> str:
    if character in _CONTROL:
        return _CONTROL[character]
    if character in _PUNCTUATION:
        return character
    if not character:
        raise PatternProblem("a pattern cannot end with \\", "write \\\\ for a backslash itself")
    problem = f"\\{character} does not mean the same everywhere"
    raise PatternProblem(problem, "there are \\d \\w \\s, \\t \\n \\r \\f, and \\ before punctuation")


def _merged(ranges: list[tuple[int, int]]) -> Ranges:
    merged = list[tuple[int, int]]()
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(ranges: Ranges) -> Ranges:
    edges = [-1, *(edge for low, high in ranges for edge in (low, high)), _LAST + 1]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in pairs if low + 1 <= high - 1)


def _overlap(a: Ranges, b: Ranges) -> bool:
    return any(low <= other_high and other_low <= high for low, high in a for other_low, other_high in b)


def _is_nullable(node: _Node) -> bool:
    match node:
        case _Characters():
            return False
        case _Sequence(items):
            return all(map(_is_nullable, items))
        case _Choice(options):
            return any(map(_is_nullable, options))
        case _Repeat(item, least):
            return least == 0 or _is_nullable(item)
        case _Group(item):
            return _is_nullable(item)
        case _Edge():
            return True


def _first(node: _Node) -> Ranges:
    """The characters that a match can begin with."""
    match node:
        case _Characters():
            return node.set
        case _Sequence(items):
            found = list[tuple[int, int]]()
            for item in items:
                found += _first(item)
                if not _is_nullable(item):
                    break
            return _merged(found)
        case _Choice(options):
            return _merged([pair for option in options for pair in _first(option)])
        case _Repeat(item) | _Group(item):
            return _first(item)
        case _Edge():
            return ()


def _is_anchored(node: _Node) -> bool:
    match node:
        case _Edge(at_end):
            return not at_end
        case _Sequence((first, *_)):
            return _is_anchored(first)
        case _Group(item):
            return _is_anchored(item)
        case _Choice(options):
            return all(map(_is_anchored, options))
        case _:
            return False


class _Openness:
    """Counts how much a pattern leaves open, from its end to its start."""

    def __init__(self, *, anchored: bool) -> None:
        self._ends = _MOST_OPEN_ENDS if anchored else _MOST_OPEN_ENDS - 1
        self._choices = 1

    def check(self, node: _Node, follow: Ranges = (), *, inside: bool = False) -> None:
        """`follow` are the characters that can come next; inside of a repetition nothing may be open."""
        match node:
            case _Sequence(items):
                for item in reversed(items):
                    self.check(item, follow, inside=inside)
                    follow = _merged([*_first(item), *(follow if _is_nullable(item) else ())])
            case _Choice(options):
                self._choice(options, follow, inside=inside)
            case _Repeat():
                self._repeat(node, follow, inside=inside)
            case _Group(item, captures):
                if captures and inside:
                    raise PatternProblem("a group that is repeated cannot be taken out", "write (?: ... ) inside")
                self.check(item, follow, inside=inside)
            case _Characters() | _Edge():
                pass

    def _choice(self, options: tuple[_Node, ...], follow: Ranges, *, inside: bool) -> None:
        starts = [_merged([*_first(each), *(follow if _is_nullable(each) else ())]) for each in options]
        if any(_overlap(a, b) for index, a in enumerate(starts) for b in starts[:index]):
            self._leave_open(len(options), inside=inside)
        for option in options:
            self.check(option, follow, inside=inside)

    def _repeat(self, node: _Repeat, follow: Ranges, *, inside: bool) -> None:
        many = node.most != 1
        if many and _is_nullable(node.item):
            raise PatternProblem("what is repeated can be empty", "write x* instead of (x*)*")
        start = _first(node.item)
        if node.least != node.most and _overlap(start, follow):
            if node.most is None and not inside:
                self._ends -= 1
                if self._ends < 0:
                    self._refuse()
            else:
                self._leave_open((node.most or _MOST_CHOICES) - node.least + 1, inside=inside)
        after = _merged([*start, *follow]) if many else follow
        self.check(node.item, after, inside=inside or many)

    def _leave_open(self, ways: int, *, inside: bool) -> None:
        self._choices *= ways
        if inside or self._choices > _MOST_CHOICES:
            self._refuse()

    def _refuse(self) -> None:
        problem = "this pattern could take too long: too often it is open how far a repetition goes"
        hint = "say what a repetition is made of, as in [^,]*, so that the next character ends it; begin with ^"
        raise PatternProblem(problem, hint)


def _written(node: _Node, end: str) -> str:
    match node:
        case _Characters(ranges, negated):
            return _written_class(ranges, negated=negated)
        case _Sequence(items):
            return "".join(_written(item, end) for item in items)
        case _Choice(options):
            return "|".join(_written(option, end) for option in options)
        case _Group(item, captures):
            return f"({'' if captures else '?:'}{_written(item, end)})"
        case _Edge(at_end):
            return end if at_end else r"\A"
        case _Repeat(item, least, most, lazy):
            counts = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
            braces = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
            return f"{_written(item, end)}{counts or braces}{'?' if lazy else ''}"


def _written_class(ranges: Ranges, *, negated: bool) -> str:
    if not negated and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _literal(ranges[0][0])
    inner = (_literal(low) + (f"-{_literal(high)}" if high > low else "") for low, high in ranges)
    return f"[{'^' if negated else ''}{''.join(inner)}]"


def _literal(code: int) -> str:
    character = chr(code)
    return "\\" + character if character in _PUNCTUATION and character != "_" else character
