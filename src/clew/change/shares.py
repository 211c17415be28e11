"""Shares of several causes in a difference: Shapley values, or one after the other.

The Shapley value of a cause is what it adds on average over all orders in which the causes could have come. Shares are
exact fractions; rounded to the digits of the value, they still add up to the difference.
"""

from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from math import factorial

WorthOf = Callable[[frozenset[int]], Decimal]
"""The value where some of the causes, by number, have happened."""


def shapley_shares(causes: int, worth: WorthOf) -> list[Fraction]:
    """What each cause adds on average over all orders."""
    found = [Fraction(0)] * causes
    for cause in range(causes):
        others = [each for each in range(causes) if each != cause]
        for size in range(causes):
            weight = Fraction(factorial(size) * factorial(causes - size - 1), factorial(causes))
            for before in combinations(others, size):
                without = frozenset(before)
                found[cause] += weight * (Fraction(worth(without | {cause})) - Fraction(worth(without)))
    return found


def sequential_shares(causes: int, worth: WorthOf) -> list[Fraction]:
    """What each cause adds after those before it."""
    made, found = frozenset[int](), list[Fraction]()
    for cause in range(causes):
        found.append(Fraction(worth(made | {cause})) - Fraction(worth(made)))
        made |= {cause}
    return found


def rounded(shares: Sequence[Fraction], scale: int) -> list[Decimal]:
    """Shares with so many decimals, whose sum is that of the fractions: the largest rests are rounded up."""
    unit = 10**scale
    floors = [share * unit // 1 for share in shares]
    missing = sum(shares, Fraction(0)) * unit - sum(floors)
    rests = sorted(range(len(shares)), key=lambda each: (floors[each] - shares[each] * unit, each))
    for each in rests[: int(missing)]:
        floors[each] += 1
    with localcontext(prec=100, rounding=ROUND_FLOOR):
        return [Decimal(int(each)).scaleb(-scale) for each in floors]
