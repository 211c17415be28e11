"""Tokens to a syntax tree, by precedence climbing.

The grammar is published in docs/reference/grammar.lark; a test compares this parser with it. Precedence, from loosest
to tightest: OR, AND, NOT, comparison (= <> < <= > >= IN, BETWEEN, LIKE, IS NULL; these do not chain), + and -, * and
/, sign. NOT is an operator even before a parenthesis: `NOT(a) IS NULL` is `NOT (a IS NULL)`.
"""

from decimal import Decimal

from clew.diagnostics import Text, UserError
from clew.diagnostics.codes.language import SYNTAX_ERROR, VALUE_OUT_OF_RANGE
from clew.lang.lexer import WORDS, Token, TokenKind, tokenize
from clew.lang.other_dialects import WORDS_ELSEWHERE
from clew.lang.syntax import (
    MAX_DEPTH,
    Bound,
    Call,
    Literal,
    Node,
    OrderedBy,
    Over,
    Reference,
    Region,
    SelectorReference,
    first_too_deep,
)
from clew.lang.types import INTEGER_MAX, MAX_PRECISION

MAX_NESTING = 100
"""Levels of parentheses, calls and signs within each other. Reading deeper ones would exhaust the stack."""

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN = range(1, 8)
_SYMBOL_LEVELS = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _COMPARISON),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/"), _PRODUCT),
}
_KEYWORD_LEVELS = {"OR": _OR, "AND": _AND, "IN": _COMPARISON, "IS": _COMPARISON}
_WORD_LEVELS = {"BETWEEN": _COMPARISON, "LIKE": _COMPARISON}
_NEGATABLE = frozenset({"IN", "BETWEEN", "LIKE"})
_CALLABLE_KEYWORDS = frozenset({"AND", "OR", "IN"})
_CASE_FORM = "write CASE WHEN condition THEN value ELSE value END; a column of this name is written `case`"
_WINDOW_FORM = "write SUM(amount) OVER (PARTITION BY customer ORDER BY day)"
_FRAME_FORM = "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
_LITERALS = {"TRUE": True, "FALSE": False, "NULL": None}


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
        if len(self._tokens) > MAX_DEPTH:
            self._refuse_depth(node)
        return node

    def _refuse_depth(self, node: Node) -> None:
        """Long rows of operators within each other are deep although no single row is."""
        culprit = first_too_deep(node)
        if culprit is not None:
            problem = f"nested more than {MAX_DEPTH} levels deep"
            hint = "move parts into separate columns"
            raise UserError(SYNTAX_ERROR.at(culprit.region.span, problem=problem, hint=hint))

    # The tokens

    @property
    def _here(self) -> Token:
        return self._tokens[self._index]

    def _advance(self) -> Token:
        token = self._tokens[self._index]
        self._index += 1
        return token

    def _at_symbol(self, symbol: str) -> bool:
        token = self._tokens[self._index]
        return token.kind is TokenKind.SYMBOL and token.value == symbol

    def _at_keyword(self, keyword: str) -> bool:
        token = self._tokens[self._index]
        return token.kind is TokenKind.KEYWORD and token.value == keyword

    def _at_word(self, word: str) -> bool:
        return _word(self._tokens[self._index]) == word

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
                f"nested more than {MAX_NESTING} levels deep",
                "move parts into named selectors or separate columns",
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
            if count >= MAX_DEPTH:
                problem = f"{MAX_DEPTH} operators in a row are too many"
                raise self._error(self._here, problem, "group them with parentheses: (a + b) + (c + d)")
            if level == _COMPARISON:
                left = self._comparison(left, start)
                self._refuse_more_after_comparison()
            elif level in {_AND, _OR}:
                left = self._connective(left, start, level)
            else:
                operator = self._advance()
                right = self._expression(level + 1)
                left = Call(operator.value, (left, right), self._region(start), self._of(operator))

    def _level_here(self) -> int | None:
        token = self._tokens[self._index]
        if token.kind is TokenKind.SYMBOL:
            return _SYMBOL_LEVELS.get(token.value)
        if token.kind is TokenKind.NAME:
            return _WORD_LEVELS.get(_word(token))
        if token.kind is not TokenKind.KEYWORD:
            return None
        if token.value == "NOT":
            following = self._tokens[self._index + 1]
            is_in = following.kind is TokenKind.KEYWORD and following.value == "IN"
            return _COMPARISON if is_in or _word(following) in _NEGATABLE else None
        return _KEYWORD_LEVELS.get(token.value)

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
        if operator.value == "IS":
            return self._is_null(left, start, operator)
        negated = operator.value == "NOT"
        test = self._advance() if negated else operator
        match _word(test):
            case "BETWEEN":
                operands: tuple[Node, ...] = self._bounds()
            case "LIKE":
                operands = self._pattern()
            case _:
                operands = self._arguments("the values after IN")
                if not operands:
                    raise self._error(test, "IN needs at least one value", "list the values in parentheses")
        node = Call(test.value.upper(), (left, *operands), self._region(start), self._of(test))
        return Call("NOT", (node,), self._region(start), self._of(operator)) if negated else node

    def _bounds(self) -> tuple[Node, ...]:
        low = self._expression(_SUM)
        if not self._at_keyword("AND"):
            raise self._unexpected(self._here, "write value BETWEEN low AND high")
        self._advance()
        return low, self._expression(_SUM)

    def _pattern(self) -> tuple[Node, ...]:
        pattern = self._expression(_SUM)
        if not self._at_word("ESCAPE"):
            return (pattern,)
        self._advance()
        return pattern, self._expression(_SUM)

    def _refuse_more_after_comparison(self) -> None:
        following = self._level_here()
        if following == _COMPARISON:
            problem = "comparisons cannot follow each other"
            raise self._error(self._here, problem, "join them with AND, or use parentheses")
        if following is not None and following > _COMPARISON:
            raise self._unexpected(self._here, "put the comparison before it in parentheses")

    def _is_null(self, left: Node, start: Token, operator: Token) -> Node:
        negated = self._at_keyword("NOT")
        if negated:
            self._advance()
        if not self._at_keyword("NULL"):
            raise self._error(self._here, "IS must be followed by NULL or NOT NULL", "use = to compare with a value")
        self._advance()
        node = Call("ISNULL", (left,), self._region(start), self._of(operator))
        return Call("NOT", (node,), self._region(start), self._of(operator)) if negated else node

    # What stands before any operator

    def _prefix(self, loosest: int) -> Node:
        token = self._here
        if self._at_keyword("NOT"):
            if loosest > _NOT:
                raise self._error(token, "NOT is not allowed here", "put NOT and what follows it in parentheses")
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
                return self._call() if self._is_called() else self._reference()
            case TokenKind.KEYWORD:
                return self._keyword()
            case TokenKind.SYMBOL if token.value == "(":
                return self._parenthesised()
            case _:
                raise self._unexpected(token)

    def _number(self, token: Token) -> Literal:
        digits = token.value.replace(".", "").lstrip("0")
        if len(digits) > MAX_PRECISION or len(token.value.partition(".")[2]) > MAX_PRECISION:
            problem = f"this number has more than {MAX_PRECISION} digits"
            raise UserError(VALUE_OUT_OF_RANGE.at(self._of(token).span, problem=problem, hint="no type holds it"))
        if "." not in token.value and int(digits or "0") <= INTEGER_MAX:
            return Literal(int(digits or "0"), self._of(token))
        return Literal(Decimal(token.value), self._of(token))

    def _parenthesised(self) -> Node:
        opening = self._advance()
        node = self._expression(_OR)
        self._close(opening, "add )")
        return node

    def _close(self, opening: Token, hint: str) -> None:
        if self._at_symbol(")"):
            self._advance()
            return
        if self._here.kind is TokenKind.END:
            raise self._error(opening, "this parenthesis is not closed", "add )")
        raise self._unexpected(self._here, hint)

    def _is_called(self) -> bool:
        following = self._tokens[self._index + 1]
        return following.kind is TokenKind.SYMBOL and following.value == "("

    def _call(self) -> Call:
        token = self._advance()
        name = token.value.upper() if token.value.isascii() else token.value
        arguments = self._arguments(f"the arguments of {name}")
        over = self._over() if self._at_window_word("OVER") else None
        return Call(name, arguments, self._region(token), self._of(token), over)

    # Windows

    def _at_window_word(self, word: str) -> bool:
        token = self._here
        return token.kind is TokenKind.NAME and token.value.isascii() and token.value.upper() == word

    def _take_window_word(self, word: str) -> None:
        if not self._at_window_word(word):
            raise self._unexpected(self._here, f"{word} is missing before it: {_WINDOW_FORM}")
        self._advance()

    def _over(self) -> Over:
        start = self._advance()
        opening = self._here
        if not self._at_symbol("("):
            raise self._error(opening, "the window after OVER must be in parentheses", _WINDOW_FORM)
        self._advance()
        keys = list[Reference]()
        if self._at_window_word("PARTITION"):
            self._advance()
            self._take_window_word("BY")
            keys.append(self._column_of_window())
            while self._at_symbol(","):
                self._advance()
                keys.append(self._column_of_window())
        order = list[OrderedBy]()
        if self._at_window_word("ORDER"):
            self._advance()
            self._take_window_word("BY")
            order.append(self._ordered())
            while self._at_symbol(","):
                self._advance()
                order.append(self._ordered())
        frame = self._frame() if self._at_window_word("ROWS") else None
        self._close(opening, _WINDOW_FORM)
        return Over(tuple(keys), tuple(order), frame, self._region(start))

    def _column_of_window(self) -> Reference:
        if self._here.kind not in {TokenKind.NAME, TokenKind.QUOTED_NAME}:
            raise self._unexpected(self._here, "write the name of a column; add one with an update before for more")
        return self._reference()

    def _ordered(self) -> OrderedBy:
        column = self._column_of_window()
        descending = self._at_window_word("DESC")
        if descending or self._at_window_word("ASC"):
            self._advance()
        return OrderedBy(column, descending)

    def _frame(self) -> tuple[Bound, Bound]:
        self._advance()
        if not self._at_word("BETWEEN"):
            raise self._unexpected(self._here, _FRAME_FORM)
        self._advance()
        first = self._bound()
        if not self._at_keyword("AND"):
            raise self._unexpected(self._here, _FRAME_FORM)
        self._advance()
        return first, self._bound()

    def _bound(self) -> Bound:
        if self._at_window_word("CURRENT"):
            self._advance()
            self._take_window_word("ROW")
            return Bound(None, "CURRENT")
        rows: Literal | None = None
        if self._here.kind is TokenKind.NUMBER:
            rows = self._number(self._advance())
        elif self._at_window_word("UNBOUNDED"):
            self._advance()
        else:
            raise self._unexpected(self._here, _FRAME_FORM)
        if self._at_window_word("PRECEDING"):
            self._advance()
            return Bound(rows, "PRECEDING")
        self._take_window_word("FOLLOWING")
        return Bound(rows, "FOLLOWING")

    def _keyword(self) -> Node:
        token = self._here
        if token.value in _CALLABLE_KEYWORDS and self._is_called():
            return self._call()
        if token.value == "CASE":
            return self._case()
        if token.value in _LITERALS:
            self._advance()
            return Literal(_LITERALS[token.value], self._of(token))
        raise self._unexpected(token, f"a column of this name is written `{self._of(token).source}`")

    def _case(self) -> Call:
        """`CASE WHEN` is a call of CASE; `CASE value WHEN` is one of SWITCH."""
        head = self._advance()
        parts = list[Node]() if self._at_keyword("WHEN") else [self._expression(_OR)]
        name = "SWITCH" if parts else "CASE"
        if not self._at_keyword("WHEN"):
            raise self._unexpected(self._here, _CASE_FORM)
        while self._at_keyword("WHEN"):
            self._advance()
            parts.append(self._expression(_OR))
            self._take_word("THEN")
            parts.append(self._expression(_OR))
        otherwise = self._here
        if self._at_word("ELSE"):
            self._advance()
            parts.append(self._expression(_OR))
        else:
            parts.append(Literal(None, self._of(otherwise)))
        self._take_word("END")
        return Call(name, tuple(parts), self._region(head), self._of(head))

    def _take_word(self, word: str) -> None:
        if not self._at_word(word):
            raise self._unexpected(self._here, f"{word} of a CASE is missing before it")
        self._advance()

    def _arguments(self, what: str) -> tuple[Node, ...]:
        opening = self._here
        if not self._at_symbol("("):
            raise self._error(opening, f"{what} must be in parentheses", "add (")
        self._advance()
        arguments = list[Node]()
        if not self._at_symbol(")"):
            arguments.append(self._expression(_OR))
            while self._at_symbol(","):
                self._advance()
                arguments.append(self._expression(_OR))
        self._close(opening, "add , or )")
        return tuple(arguments)

    def _reference(self) -> Reference:
        first = self._advance()
        if not self._at_symbol("."):
            return Reference(None, first.value, self._of(first))
        self._advance()
        second = self._here
        if second.kind not in {TokenKind.NAME, TokenKind.QUOTED_NAME, TokenKind.KEYWORD}:
            raise self._error(second, "a column name must follow the point", "write table.column")
        self._advance()
        column = self._of(second).source if second.kind is TokenKind.KEYWORD else second.value
        return Reference(first.value, column, self._region(first))

    # Errors

    def _unexpected(self, token: Token, hint: str | None = None) -> UserError:
        if token.kind is TokenKind.END:
            return self._error(token, "the expression ends too early", hint or "something is missing at the end")
        if token.value == "=" and self._index and self._tokens[self._index - 1].value == "=":
            return self._error(token, "equality is written with one =", "write = instead of ==")
        if token.value == ")":
            return self._error(token, "this parenthesis closes nothing, or a value is missing before it", hint or "")
        shown = self._text.value[token.start : token.end]
        if shown.upper() in WORDS_ELSEWHERE and token.kind is TokenKind.NAME:
            construct, instead = WORDS_ELSEWHERE[shown.upper()]
            return self._error(token, f"there is no {construct} in this language", instead)
        if token.value == "*" and self._is_call_of("COUNT"):
            return self._error(token, "there is no COUNT(*)", "write COUNT_ALL() to count rows")
        return self._error(
            token, f"{_shortened(shown)} is not allowed here", hint or "an operator or a comma may be missing before it"
        )

    def _is_call_of(self, name: str) -> bool:
        """Whether the token is the first argument of a function."""
        before = self._tokens[max(0, self._index - 2) : self._index]
        return [token.value.upper() for token in before] == [name, "("]

    def _error(self, token: Token, problem: str, hint: str) -> UserError:
        start, end = token.start, token.end
        if token.kind is TokenKind.END:
            start = self._tokens[-2].end if len(self._tokens) > 1 else 0
            end = start + 1
        return UserError(SYNTAX_ERROR.at(self._text.span(start, end), problem=problem, hint=hint))


def _word(token: Token) -> str:
    """The word that a token is, in upper case; nothing where it is none, or is in backquotes."""
    if token.kind is not TokenKind.NAME or not token.value.isascii():
        return ""
    folded = token.value.upper()
    return folded if folded in WORDS else ""


def _shortened(source: str) -> str:
    return source if len(source) <= 40 else source[:37] + "..."
