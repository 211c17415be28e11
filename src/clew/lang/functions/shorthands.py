"""Short names for expressions that people write often."""

from clew.lang.functions.declaration import Example, Family, NullRule, Parameter, Shorthand

_ROWS = tuple({"x": value} for value in (3, 1, None, 1))
_PAIRS = tuple({"x": value, "w": weight} for value, weight in ((3, 1), (1, 2), (None, 5), (1, 1)))
_NUMBER = Parameter("number", "a number")

_ALL = (
    Shorthand(
        "IFNULL",
        Family.LOGIC,
        (Parameter("value", "any type"), Parameter("replacement", "the same type")),
        "the type of both values",
        NullRule.HANDLES,
        "The value, or the replacement if it is NULL.",
        (Example("IFNULL(NULL, 0)", "0"),),
        "COALESCE($1, $2)",
    ),
    Shorthand(
        "TRUNC",
        Family.NUMBER,
        (_NUMBER, Parameter("digits", "a literal whole number; 0 by default", optional=True)),
        "as ROUND",
        NullRule.PROPAGATES,
        "The number without the digits after those that are kept; ROUND towards zero.",
        (Example("TRUNC(-2.987, 1)", "-2.9"), Example("TRUNC(2.9)", "2")),
        'ROUND($1, $2, "down")',
        ("0",),
    ),
    Shorthand(
        "LOG",
        Family.NUMBER,
        (_NUMBER, Parameter("base", "a number; 10 by default", optional=True)),
        "double",
        NullRule.PROPAGATES,
        "The logarithm to a base: ROUND(LN(number) / LN(base), 14). NULL where there is none.",
        (Example("LOG(1000)", "3.0"), Example("LOG(8, 2)", "3.0"), Example("LOG(0)", "NULL")),
        "ROUND(LN($1) / LN($2), 14)",
        ("10",),
    ),
    Shorthand(
        "COUNT_IF",
        Family.AGGREGATE,
        (Parameter("condition", "boolean"),),
        "integer",
        NullRule.HANDLES,
        "The number of rows for which the condition is TRUE.",
        (Example("COUNT_IF(x = 1)", "2", _ROWS),),
        "SUM(IF($1, 1, 0))",
    ),
    Shorthand(
        "SUM_IF",
        Family.AGGREGATE,
        (_NUMBER, Parameter("condition", "boolean")),
        "a number; for decimals, with 10 more digits before the decimal point",
        NullRule.SKIPS,
        "The sum of the values of the rows for which the condition is TRUE; NULL if there are none.",
        (Example("SUM_IF(x, x < 3)", "2", _ROWS),),
        "SUM(IF($2, $1, NULL))",
    ),
    Shorthand(
        "WEIGHTED_AVG",
        Family.AGGREGATE,
        (_NUMBER, Parameter("weight", "a number")),
        "a number",
        NullRule.SKIPS,
        "The mean of the values, each counted with its weight; NULL if there are none or the weights add up to zero.",
        (Example("WEIGHTED_AVG(x, w)", "1.500000000000000000", _PAIRS),),
        "SUM($1 * $2) / SUM(IF($1 IS NULL, NULL, $2))",
    ),
    Shorthand(
        "MEDIAN",
        Family.AGGREGATE,
        (_NUMBER,),
        "as PERCENTILE",
        NullRule.SKIPS,
        "The middle of the sorted values, or the mean of the two in the middle; NULL if there are none.",
        (Example("MEDIAN(x)", "1.0000", _ROWS),),
        "PERCENTILE($1, 0.5)",
    ),
    Shorthand(
        "STDDEV",
        Family.AGGREGATE,
        (_NUMBER,),
        "double",
        NullRule.SKIPS,
        "The standard deviation of the values as a sample; NULL if there are fewer than two.",
        (Example("STDDEV(x)", "1.1547005383792517", _ROWS),),
        "SQRT(VARIANCE($1))",
    ),
)

SHORTHANDS = {shorthand.name: shorthand for shorthand in _ALL}
