"""Which mistakes are made: a sample of those that Cosmic Ray can make in a file, drawn with a seed."""

# ruff: noqa: PLC0415 - Cosmic Ray is installed by `make mutants`, and not where the tests of this module run

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

OPERATORS = (
    "core/ReplaceBinaryOperator_Add_Sub",
    "core/ReplaceBinaryOperator_Sub_Add",
    "core/ReplaceBinaryOperator_Mul_Div",
    "core/ReplaceComparisonOperator_Eq_NotEq",
    "core/ReplaceComparisonOperator_NotEq_Eq",
    "core/ReplaceComparisonOperator_Lt_LtE",
    "core/ReplaceComparisonOperator_LtE_Lt",
    "core/ReplaceComparisonOperator_Gt_GtE",
    "core/ReplaceComparisonOperator_GtE_Gt",
    "core/ReplaceComparisonOperator_Is_IsNot",
    "core/ReplaceComparisonOperator_IsNot_Is",
    "core/ReplaceUnaryOperator_Delete_Not",
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/AddNot",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceContinueWithBreak",
    "core/NumberReplacer",
    "core/ZeroIterationForLoop",
)
"""One of each family: the others make mistakes that every test notices, such as a type error at once."""

Span = tuple[tuple[int, int], tuple[int, int]]
"""Line and column where something begins, and where it ends."""


@dataclass(frozen=True)
class Mutant:
    """A mistake: the code of a file with one thing changed."""

    file: Path
    line: int
    operator: str
    code: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.operator.removeprefix('core/')}"


def chosen(files: Sequence[Path], count: int, seed: int, root: Path) -> Iterator[Mutant]:
    """So many mutants in files below a root. A file is drawn as often as it has lines."""
    chance = random.Random(seed)  # noqa: S311 - the sample is to be the same every time
    sizes = [len((root / file).read_text(encoding="utf-8").splitlines()) for file in files]
    for file in chance.choices(files, sizes, k=count):
        yield from _one_of(file, root, chance)


def _one_of(file: Path, root: Path, chance: random.Random) -> Iterator[Mutant]:
    """A mutant of a file; none where there is nothing to change in it."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text = (root / file).read_text(encoding="utf-8")
    left_out, nodes = list(without_effect(text)), list(ast_nodes(get_ast(text)))
    found = list[tuple[str, int, int]]()
    for name in OPERATORS:
        operator = get_operator(name)()
        places = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, start in enumerate(places):
            if not any(begin <= start < end for begin, end in left_out):
                found.append((name, occurrence, start[0]))
    if found:
        name, occurrence, line = chance.choice(found)
        code = mutate_code(text, get_operator(name)(), occurrence)
        if code is not None:
            yield Mutant(file, line, name, code)


def without_effect(text: str) -> Iterator[Span]:
    """Places where a mistake says nothing about tests: annotations, decorators, and what is for type checkers alone."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            for each in (*(found.annotation for found in arguments if found is not None), node.returns):
                if each is not None:
                    yield _span(each)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from map(_span, node.decorator_list)
        elif isinstance(node, ast.AnnAssign):
            yield _span(node.annotation)
        elif isinstance(node, ast.Assert) or (
            isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        ):
            yield _span(node)


def _span(node: ast.expr | ast.stmt) -> Span:
    end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return (node.lineno, node.col_offset), end
