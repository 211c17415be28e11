"""Writes the pages of docs/reference/ that are derived from declarations: functions and error codes.

Run it with `make docs`. A test fails if a page is out of date.
"""

import string
from collections.abc import Callable, Iterable
from pathlib import Path

from clew.diagnostics import Code, Nature, PlainText
from clew.diagnostics.codes import FAMILIES
from clew.lang import FUNCTIONS, Scalar, Scope, Table, Type, check, parse, types
from clew.lang.conversion import assignable
from clew.lang.functions import (
    PERIOD_FUNCTIONS,
    SHORTHANDS,
    AggregateFunction,
    AnyFunction,
    Example,
    Family,
    NullRule,
    Parameter,
    PeriodFunction,
    RunFunction,
    Shorthand,
    usage,
)
from clew.lang.literals import text_of_value
from clew.lang.types import BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, common_type, decimal
from clew.lang.windowing import WINDOW_FUNCTIONS, WindowFunction

DOCS = Path(__file__).parents[1] / "docs" / "reference"

NOTE = "<!-- Written by `make docs` from the declarations in the code. Change those, then run it again. -->"

LITERALS = ("42", "3.14", '"text"', '"say ""hi"""', "TRUE", "FALSE", "NULL", 'DATE("2026-01-31")')

PRECEDENCE = (
    ("`-a`, `+a`", "", "`-a * b` is `(-a) * b`"),
    ("`*`, `/`", "left to right", "`a / b * c` is `(a / b) * c`"),
    ("`+`, `-`", "left to right", "`a - b + c` is `(a - b) + c`"),
    (
        "`=`, `<>`, `<`, `<=`, `>`, `>=`, `IN`, `NOT IN`, `IS NULL`, `IS NOT NULL`",
        "none",
        "`a < b < c` is refused",
    ),
    ("`NOT`", "", "`NOT a = b` is `NOT (a = b)`"),
    ("`AND`", "", "`a AND b OR c` is `(a AND b) OR c`"),
    ("`OR`", "", "`a OR b AND c` is `a OR (b AND c)`"),
)

KINDS = (INTEGER, decimal(12, 2), DOUBLE, STRING, BOOLEAN, DATE, TIMESTAMP)

OPERATOR_FORMS = {"NEGATE": "-a"}


def main() -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8", newline="\n")


def functions_page() -> str:
    """Every function of the language, and the rules that they share."""
    parts = [
        *_operators(),
        *(part for family in Family if family is not Family.OPERATOR for part in _family(family)),
        *_patterns(),
        *_literals(),
        *_precedence(),
        *_digits(),
        *_conversions(),
        *_today(),
    ]
    return _page(
        "# Functions",
        "What each function and operator of the [expression language](language.md) takes, what it gives, and how it "
        "treats NULL. Function names are not case-sensitive.",
        _contents(part.removeprefix("## ") for part in parts if part.startswith("## ")),
        *parts,
    )


def _contents(headings: Iterable[str]) -> str:
    return "\n".join(f"- [{heading}](#{heading.lower().replace(' ', '-')})" for heading in headings)


def _operators() -> Iterable[str]:
    yield "## Operators"
    yield "An operator gives NULL if one of its operands is NULL."
    rows = [
        (
            f"`{_form(function)}`",
            " and ".join(dict.fromkeys(parameter.takes for parameter in function.parameters)),
            function.returns,
            function.sentence,
            "<br>".join(f"`{line}`" for line in _examples(function.examples)),
        )
        for function in FUNCTIONS.values()
        if function.family is Family.OPERATOR
    ]
    yield _table(("Operator", "Takes", "Gives", "What it does", "Examples"), rows)


def _family(family: Family) -> Iterable[str]:
    yield f"## {family.value}"
    for function in (*FUNCTIONS.values(), *SHORTHANDS.values(), *PERIOD_FUNCTIONS.values(), *WINDOW_FUNCTIONS.values()):
        if function.family is family:
            yield from _function(function)


def _function(function: AnyFunction | Shorthand | PeriodFunction | WindowFunction) -> Iterable[str]:
    yield f"### {function.name}"
    yield f"`{_form(function)}`"
    yield function.sentence
    yield "\n".join(
        [
            *(f"- `{parameter.name}`: {_takes(parameter)}" for parameter in function.parameters),
            f"- gives: {function.returns}",
            f"- NULL: {_null_rule(function)}",
            *([f"- stands for: `{_stands_for(function)}`"] if isinstance(function, Shorthand) else []),
        ]
    )
    if function.examples:
        yield "\n".join(["```", *_examples(function.examples), "```"])


def _stands_for(shorthand: Shorthand) -> str:
    text = shorthand.stands_for
    for number, parameter in enumerate(shorthand.parameters, start=1):
        text = text.replace(f"${number}", parameter.name)
    return text


def _form(function: AnyFunction | Shorthand | PeriodFunction | WindowFunction) -> str:
    if function.family is Family.OPERATOR:
        return OPERATOR_FORMS.get(function.name, f"a {function.name} b")
    if function.name == "CASE":
        return "CASE WHEN condition THEN value ... ELSE otherwise END"
    if isinstance(function, WindowFunction):
        return f"{usage(function)} OVER (PARTITION BY column, ... ORDER BY column, ...)"
    return usage(function)


def _takes(parameter: Parameter) -> str:
    return (
        parameter.takes + ("; one or more" if parameter.repeats else "") + ("; optional" if parameter.optional else "")
    )


def _null_rule(function: AnyFunction | Shorthand | PeriodFunction | WindowFunction) -> str:
    has_none = isinstance(function, RunFunction | AggregateFunction | PeriodFunction | WindowFunction)
    if function.nulls is NullRule.HANDLES and has_none and not function.parameters:
        return "it has no arguments"
    return {NullRule.HANDLES: "see above"}.get(function.nulls, function.nulls.value)


def _examples(examples: Iterable[Example]) -> Iterable[str]:
    for example in examples:
        rows = [", ".join(text_of_value(value) for value in row.values()) for row in example.rows]
        values = ", ".join(rows if len(example.rows[:1] and example.rows[0]) == 1 else (f"({row})" for row in rows))
        over = f"   over the rows {', '.join(example.rows[0])} = {values}" if example.rows else ""
        yield f"{example.expression} → {example.result}{over}"


def _patterns() -> Iterable[str]:
    yield "## Patterns"
    yield (
        "Patterns are written in the expression, in quotes, and are checked when the project is compiled. A backslash "
        "is an ordinary character of a text, so it is written once."
    )
    yield _table(
        ("Regular expressions", "What it matches"),
        (
            ("`a`, `\\.`", "the character itself; a backslash goes before punctuation that has a meaning"),
            ("`.`", "any character but a line feed"),
            ("`[a-z0-9]`, `[^,]`", "one of these characters, one that is not"),
            (
                "`\\d`, `\\w`, `\\s`, `\\D`, `\\W`, `\\S`",
                "a digit, a letter, digit or `_`, a space, all of ASCII; not one",
            ),
            ("`\\t`, `\\n`, `\\r`, `\\f`", "a tab, a line feed, a carriage return, a form feed"),
            (
                "`*`, `+`, `?`, `{2}`, `{2,}`, `{2,5}`",
                "how often what is before it occurs, up to 100; with `?` after it, as few as do",
            ),
            ("`a\\|b`, `(...)`, `(?:...)`", "one or the other; a group that can be taken out; a group that cannot"),
            ("`^`, `$`", "the start and the end of the text"),
        ),
    )
    yield (
        "Nothing else is taken, since engines differ in it: no lookaround, no references to groups, no `\\b`, no "
        "flags. Matching takes bounded time: a pattern may leave open at most once how far a repetition goes (twice if "
        "it begins with `^`), and never inside another repetition; a text has at most 4,000 characters. `[^,]*,` "
        "leaves nothing open, since the comma ends it; `.*,` does. In a replacement, `$1` is what the first group "
        "matches, `$0` is all, "
        "and `$$` is a dollar."
    )
    yield _table(
        ("Patterns of dates", "What it stands for"),
        (
            ("`yyyy`, `yy`", "the year with four digits; with two, of 2000 to 2099"),
            ("`MM`, `M`, `MMM`", "the month with two digits; with one or two; Jan to Dec"),
            ("`dd`, `d`", "the day with two digits; with one or two"),
            ("`HH`, `mm`, `ss`", "hour, minute and second, where timestamps are written"),
            ("anything but letters", "itself"),
        ),
    )
    yield (
        "Patterns of numbers are `0.00`, `#,##0.00` and the like: zeros before the point are the fewest digits there, "
        "those after it are all digits there, rounded half-up; `#,##` divides thousands by commas."
    )
    yield (
        "POWER, EXP, LN and LOG are calculated in prescribed steps, so that Spark, Python and the verifier of evidence "
        "packs give the same bits; the last digits differ from those of other programs."
    )


def _literals() -> Iterable[str]:
    yield "## Literals"
    yield (
        "A number has exactly the digits that you write; a decimal point needs digits on both sides, and there are no "
        "exponents. A whole number that does not fit into 64 bits is a decimal. Text is in double quotes and may "
        "contain line breaks; write a double quote inside it twice. Write a date as a call of DATE, which is checked "
        "when the project is compiled."
    )
    yield _table(("Literal", "Type"), [(f"`{text}`", f"`{_type_of(text)}`") for text in LITERALS])


def _type_of(text: str) -> Type:
    checked = check(parse(PlainText(text)), Scope((Table("row", {}),)), Scalar("in a literal"))
    if checked.expression is None:
        raise ValueError(text)
    return checked.expression.type


def _precedence() -> Iterable[str]:
    yield "## Precedence"
    yield "From tightest to loosest; parentheses override them. [grammar.lark](grammar.lark) is the full grammar."
    yield _table(("Operators", "Associativity", "Example"), PRECEDENCE)


def _digits() -> Iterable[str]:
    yield "## Digits of decimals"
    yield (
        "`decimal(p,s)` has p digits, s of them after the decimal point. Below, a is a `decimal(p1,s1)` and b a "
        "`decimal(p2,s2)`. An integer combined with a decimal counts as `decimal(20,0)`; an integer literal counts as "
        "a decimal with exactly its digits. IF, COALESCE, MIN and MAX return one of their arguments."
    )
    yield f"```\n{_table_of_digits()}\n```"
    yield _rule_for_too_many_digits()


def _table_of_digits() -> str:
    lines = (types.__doc__ or "").splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines if line.startswith("    "))


def _rule_for_too_many_digits() -> str:
    paragraphs = (types.__doc__ or "").strip().split("\n\n")
    return next(" ".join(text.split()) for text in paragraphs if text.startswith("A result that would need"))


def _conversions() -> Iterable[str]:
    yield "## Implicit conversions"
    yield (
        "When an operator or function combines values of two types, both are converted to the type in this table; "
        "where the table has none, the expression is an error. For any other conversion use TO_STRING, TO_INTEGER, "
        "TO_DECIMAL or TO_DATE. NULL fits every type. Exact numbers of different types are compared with all their "
        "digits."
    )
    header = ("", *(f"`{kind}`" for kind in KINDS))
    yield _table(header, [(f"`{row}`", *(_meeting(row, column) for column in KINDS)) for row in KINDS])
    yield (
        "A value that is assigned to a column is converted to the type of the column. Numbers are rounded half-up to "
        "its scale; if a value does not fit, the error names the column and the value. These can be assigned:"
    )
    yield _table(
        ("Column", "Values that can be assigned"),
        [(f"`{target}`", ", ".join(f"`{kind}`" for kind in KINDS if assignable(kind, target))) for target in KINDS],
    )


def _meeting(a: Type, b: Type) -> str:
    common = common_type(a, b)
    return f"`{common}`" if common else "–"


def _today() -> Iterable[str]:
    yield "## What TODAY means"
    yield (
        "TODAY() is the date, in UTC, on which the run started. It is stored with the run, so every row sees the same "
        "date, even if the run passes midnight, is paused and resumed, or is explained a year later. Nothing else in "
        "the language depends on the clock, and nothing is random."
    )


def errors_page() -> str:
    """Every code of the catalogue."""
    natures = {
        Nature.WRONG: "a definition or some data is wrong, or something failed",
        Nature.USAGE: "the command or request is invalid",
        Nature.NOT_FOUND: "it does not exist",
    }
    return _page(
        "# Errors",
        "Every error has a code that does not change between releases, a message, a place in a file if there is one, "
        "and a hint. Words in ‹angle brackets› are placeholders.",
        "There are three kinds of errors:",
        "\n".join(f"- *{nature.value}*: {meaning}" for nature, meaning in natures.items()),
        "The families:",
        _contents(FAMILIES),
        *(part for family, codes in FAMILIES.items() for part in (f"## {family}", *map(_code, codes))),
    )


def _code(code: Code) -> str:
    message = _with_placeholders(code.message)
    return f"### {code.name}\n\n" + "\n".join(
        [
            code.meaning,
            "",
            f"- message: {'states the problem' if message == '‹problem›' else message}",
            f"- remedy: {code.remedy}",
            f"- kind: {code.nature.value}",
        ]
    )


def _with_placeholders(template: str) -> str:
    parts = string.Formatter().parse(template)
    return "".join(text + (f"‹{name.replace('_', ' ')}›" if name else "") for text, name, _, _ in parts)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(header)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _page(*parts: str) -> str:
    title, *rest = parts
    return "\n\n".join([title, NOTE, *rest]) + "\n"


PAGES: dict[str, Callable[[], str]] = {"functions.md": functions_page, "errors.md": errors_page}

if __name__ == "__main__":
    main()
