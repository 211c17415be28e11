"""Tokens to a syntax tree, by precedence climbing.

The grammar is published in docs/reference/grammar.lark; a test holds this parser and that grammar against each other.
Precedence, from loose to tight: OR, AND, NOT, comparison (= <> < <= > >= IN, IS NULL; these do not chain), + and -,
* and /, sign. NOT is an operator also where a parenthesis follows it: `NOT(a) IS NULL` is `NOT (a IS NULL)`.
"""

from decimal import Decimal

from clew.diagnostics import Text, UserError
from clew.diagnostics.codes.language import SYNTAX_ERROR, VALUE_OUT_OF_RANGE
from clew.lang.lexer import KEYWORDS, Token, TokenKind, tokenize
from clew.lang.syntax import Call, Literal, Node, Reference, Region, SelectorReference
from clew.lang.types import INTEGER_MAX, MAX_PRECISION

MAX_NESTING = 100
"""Levels of parentheses and calls within each other. Deeper ones would exhaust the stack of some reader of the tree."""

MAX_OPERATORS_IN_A_ROW = 200
"""Operators of one level after each other (a + b + c ...): each nests the tree one deeper. AND and OR do not."""

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN = range(1, 8)
_CALLABLE_KEYWORDS = frozenset({"AND", "OR", "IN"})


def parse(text: Text) -> Node:
    """The syntax tree of an expression. Raises a UserError with one SyntaxError (or ValueOutOfRange) diagnostic."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: Text) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._index = 0
        self._nesting = 0

    def whole(self) -> Node:
        first = self._here
        if first.kind is TokenKind.END:
            raise self._error(first, "the expression is empty", "write an expression")
        node = self._expression(_OR)
        last = self._here
        if last.kind is not TokenKind.END:
            raise self._unexpected(last)
        return node

    # The tokens

    @property
    def _here(self) -> Token:
        return self._tokens[self._index]

    def _advance(self) -> Token:
        token = self._tokens[self._index]
        self._index += 1
        return token

    def _at_symbol(self, symbol: str) -> bool:
        return self._here.kind is TokenKind.SYMBOL and self._here.value == symbol

    def _at_keyword(self, keyword: str, ahead: int = 0) -> bool:
        index = min(self._index + ahead, len(self._tokens) - 1)
        token = self._tokens[index]
        return token.kind is TokenKind.NAME and token.value.upper() == keyword

    def _region(self, start: Token) -> Region:
        return Region(self._text, start.start, self._tokens[self._index - 1].end)

    def _of(self, token: Token) -> Region:
        return Region(self._text, token.start, token.end)

    # Precedence climbing

    def _expression(self, loosest: int) -> Node:
        start = self._here
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise self._error(
                start,
                f"more than {MAX_NESTING} levels within each other",
                "move parts into named selectors or columns of their own",
            )
        node = self._operators_after(self._prefix(loosest), start, loosest)
        self._nesting -= 1
        return node

    def _operators_after(self, left: Node, start: Token, loosest: int) -> Node:
        count = 0
        while True:
            level = self._level_here()
            if level is None or level < loosest:
                return left
            count += 1
            if count > MAX_OPERATORS_IN_A_ROW:
                raise self._error(
                    self._here, f"more than {MAX_OPERATORS_IN_A_ROW} operators in a row", "split the expression in two"
                )
            if level == _COMPARISON:
                left = self._comparison(left, start)
                if self._level_here() == _COMPARISON:
                    raise self._error(
                        self._here, "comparisons cannot follow each other", "join them with AND, or use parentheses"
                    )
            elif level in {_AND, _OR}:
                left = self._connective(left, start, level)
            else:
                operator = self._advance()
                right = self._expression(level + 1)
                left = Call(operator.value, (left, right), self._region(start), self._of(operator))

    def _level_here(self) -> int | None:
        token = self._here
        if token.kind is TokenKind.SYMBOL:
            if token.value in _COMPARISONS:
                return _COMPARISON
            return {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}.get(token.value)
        if token.kind is TokenKind.NAME:
            keyword = token.value.upper()
            if keyword == "NOT":
                return _COMPARISON if self._at_keyword("IN", ahead=1) else None
            return {"OR": _OR, "AND": _AND, "IN": _COMPARISON, "IS": _COMPARISON}.get(keyword)
        return None

    def _connective(self, left: Node, start: Token, level: int) -> Node:
        """A chain of ANDs or ORs is one call, so that long ones stay flat."""
        keyword = "AND" if level == _AND else "OR"
        operator = self._here
        operands = [left]
        while self._at_keyword(keyword):
            self._advance()
            operands.append(self._expression(level + 1))
        return Call(keyword, tuple(operands), self._region(start), self._of(operator))

    def _comparison(self, left: Node, start: Token) -> Node:
        operator = self._advance()
        if operator.kind is TokenKind.SYMBOL:
            right = self._expression(_SUM)
            return Call(operator.value, (left, right), self._region(start), self._of(operator))
        keyword = operator.value.upper()
        if keyword == "IS":
            return self._is_null(left, start, operator)
        negated = keyword == "NOT"
        membership = self._advance() if negated else operator
        values = self._arguments("the values after IN")
        if not values:
            raise self._error(membership, "IN needs at least one value", "list the values in parentheses")
        node = Call("IN", (left, *values), self._region(start), self._of(membership))
        return Call("NOT", (node,), self._region(start), self._of(operator)) if negated else node

    def _is_null(self, left: Node, start: Token, operator: Token) -> Node:
        negated = self._at_keyword("NOT")
        if negated:
            self._advance()
        if not self._at_keyword("NULL"):
            raise self._error(self._here, "after IS only NULL or NOT NULL can stand", "use = to compare with a value")
        self._advance()
        node = Call("ISNULL", (left,), self._region(start), self._of(operator))
        return Call("NOT", (node,), self._region(start), self._of(operator)) if negated else node

    # What stands before any operator

    def _prefix(self, loosest: int) -> Node:
        token = self._here
        if self._at_keyword("NOT"):
            if loosest > _NOT:
                raise self._error(token, "NOT cannot stand here", "put NOT and what follows it in parentheses")
            self._advance()
            operand = self._expression(_NOT)
            return Call("NOT", (operand,), self._region(token), self._of(token))
        if token.kind is TokenKind.SYMBOL and token.value in {"-", "+"}:
            self._advance()
            operand = self._expression(_SIGN)
            if token.value == "+":
                return operand
            return Call("NEGATE", (operand,), self._region(token), self._of(token))
        return self._primary()

    def _primary(self) -> Node:
        token = self._here
        match token.kind:
            case TokenKind.NUMBER:
                return self._number(self._advance())
            case TokenKind.STRING:
                self._advance()
                return Literal(token.value, self._of(token))
            case TokenKind.SELECTOR:
                self._advance()
                return SelectorReference(token.value, self._of(token))
            case TokenKind.QUOTED_NAME:
                return self._reference()
            case TokenKind.NAME:
                return self._named()
            case TokenKind.SYMBOL if token.value == "(":
                return self._parenthesised()
            case _:
                raise self._unexpected(token)

    def _number(self, token: Token) -> Literal:
        digits = token.value.replace(".", "").lstrip("0")
        if len(digits) > MAX_PRECISION or len(token.value.partition(".")[2]) > MAX_PRECISION:
            problem = f"this number has more than {MAX_PRECISION} digits"
            raise UserError(VALUE_OUT_OF_RANGE.at(self._of(token).span, problem=problem, hint="no type holds it"))
        if "." not in token.value and int(token.value) <= INTEGER_MAX:
            return Literal(int(token.value), self._of(token))
        return Literal(Decimal(token.value), self._of(token))

    def _parenthesised(self) -> Node:
        opening = self._advance()
        node = self._expression(_OR)
        self._close(opening)
        return node

    def _close(self, opening: Token) -> None:
        if self._at_symbol(")"):
            self._advance()
            return
        if self._here.kind is TokenKind.END:
            raise self._error(opening, "this parenthesis is not closed", "add )")
        raise self._unexpected(self._here, "expected , or )")

    def _named(self) -> Node:
        token = self._here
        keyword = token.value.upper()
        called = self._tokens[self._index + 1]
        is_call = called.kind is TokenKind.SYMBOL and called.value == "("
        if is_call and (keyword not in KEYWORDS or keyword in _CALLABLE_KEYWORDS):
            self._advance()
            arguments = self._arguments(f"the arguments of {keyword}")
            return Call(keyword, arguments, self._region(token), self._of(token))
        if keyword in {"TRUE", "FALSE", "NULL"}:
            self._advance()
            return Literal({"TRUE": True, "FALSE": False, "NULL": None}[keyword], self._of(token))
        if keyword in KEYWORDS:
            raise self._unexpected(token, f"a column of this name is written `{token.value}`")
        return self._reference()

    def _arguments(self, what: str) -> tuple[Node, ...]:
        opening = self._here
        if not self._at_symbol("("):
            raise self._error(opening, f"{what} stand in parentheses", "add (")
        self._advance()
        arguments = list[Node]()
        if not self._at_symbol(")"):
            arguments.append(self._expression(_OR))
            while self._at_symbol(","):
                self._advance()
                arguments.append(self._expression(_OR))
        self._close(opening)
        return tuple(arguments)

    def _reference(self) -> Reference:
        first = self._advance()
        if not self._at_symbol("."):
            return Reference(None, first.value, self._of(first))
        self._advance()
        second = self._here
        if second.kind not in {TokenKind.NAME, TokenKind.QUOTED_NAME}:
            raise self._error(second, "a column name must follow the point", "write table.column")
        self._advance()
        return Reference(first.value, second.value, self._region(first))

    # Errors

    def _unexpected(self, token: Token, hint: str | None = None) -> UserError:
        if token.kind is TokenKind.END:
            return self._error(token, "the expression ends too early", hint or "something is missing at the end")
        if token.value == "=" and self._index and self._tokens[self._index - 1].value == "=":
            return self._error(token, "equality is written with one =", "write = instead of ==")
        if token.value == ")":
            return self._error(token, "this parenthesis closes nothing, or a value is missing before it", hint or "")
        shown = self._text.value[token.start : token.end]
        return self._error(
            token, f"{_shortened(shown)} cannot stand here", hint or "an operator or a comma may be missing before it"
        )

    def _error(self, token: Token, problem: str, hint: str) -> UserError:
        start, end = token.start, token.end
        if token.kind is TokenKind.END:
            start, end = len(self._text.value), len(self._text.value) + 1
        return UserError(SYNTAX_ERROR.at(self._text.span(start, end), problem=problem, hint=hint))


def _shortened(source: str) -> str:
    return source if len(source) <= 40 else source[:37] + "..."
