"""What people know from SQL and spreadsheets, and how it is written here. Only messages use it."""

from collections.abc import Mapping

_TO_TYPE = "TO_DECIMAL, TO_INTEGER, TO_DATE or TO_STRING"
_COALESCE = "write COALESCE(value, replacement)"
_NESTED_IF = "write IF(condition, value, otherwise), one inside another for several cases"
_JOIN = "add the other dataset under `joins`, then write alias.column"
_TODAY = "write TODAY()"

FUNCTIONS_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("IFNULL", "NVL", "IFNA", "ZEROIFNULL"), _COALESCE),
    **dict.fromkeys(("CASE", "SWITCH", "IFS", "CHOOSE", "DECODE", "IIF"), _NESTED_IF),
    **dict.fromkeys(("VLOOKUP", "XLOOKUP", "HLOOKUP", "LOOKUP", "INDEX", "MATCH"), _JOIN),
    **dict.fromkeys(("SUMIF", "SUMIFS", "SUM_IF"), "write SUM(IF(condition, value, 0))"),
    **dict.fromkeys(("COUNTIF", "COUNTIFS", "COUNT_IF"), "write SUM(IF(condition, 1, 0))"),
    **dict.fromkeys(("AVERAGEIF", "AVERAGEIFS"), "write AVG(IF(condition, value, NULL))"),
    **dict.fromkeys(("AVERAGE", "MEAN"), "write AVG(value)"),
    **dict.fromkeys(("CAST", "CONVERT", "VALUE", "TRY_CAST"), f"write {_TO_TYPE}"),
    **dict.fromkeys(("NOW", "GETDATE", "CURDATE", "CURRENT_DATE", "CURRENT_TIMESTAMP", "SYSDATE"), _TODAY),
    **dict.fromkeys(("LENGTH", "CHAR_LENGTH"), "write LEN(text)"),
    **dict.fromkeys(("SUBSTR", "MID"), "write SUBSTRING(text, start, length)"),
    **dict.fromkeys(("CONCATENATE", "TEXTJOIN", "CONCAT_WS"), "write CONCAT(a, b, ...)"),
    **dict.fromkeys(("INSTR", "FIND", "SEARCH", "CHARINDEX", "POSITION"), "CONTAINS(text, part) looks for a part"),
    **dict.fromkeys(("LTRIM", "RTRIM"), "write TRIM(text)"),
    **dict.fromkeys(("INT", "TRUNC", "TRUNCATE", "ROUNDDOWN"), "write FLOOR(number) or ROUND(number, digits)"),
    **dict.fromkeys(("CEILING", "ROUNDUP"), "write CEIL(number)"),
    "NULLIF": "write IF(a = b, NULL, a)",
    "ISBLANK": "write ISNULL(value)",
    "GREATEST": "write MAX(a, b, ...)",
    "LEAST": "write MIN(a, b, ...)",
    "SUMPRODUCT": "write SUM(a * b)",
    "COUNTA": "write COUNT(value)",
    "COUNTD": "write COUNT_DISTINCT(value)",
    "UCASE": "write UPPER(text)",
    "LCASE": "write LOWER(text)",
    "TEXT": "write TO_STRING(value)",
    "DATEVALUE": "write TO_DATE(text)",
    "DATE_ADD": "write DATEADD(date, days)",
    "DATE_DIFF": "write DATEDIFF(later, earlier)",
    "POWER": "write the multiplication out",
}
"""How the work of a function of another language is done here, by its name."""

_LIKE = "write STARTSWITH, ENDSWITH or CONTAINS(text, part)"

WORDS_ELSEWHERE: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("CASE", "WHEN", "THEN", "ELSE", "END"), ("CASE", _NESTED_IF)),
    **{word: (word, _LIKE) for word in ("LIKE", "ILIKE", "RLIKE", "REGEXP")},
    "BETWEEN": ("BETWEEN", "write value >= low AND value <= high"),
    "XOR": ("XOR", "write a <> b"),
    "DIV": ("DIV", "write FLOOR(a / b)"),
    "OVER": ("OVER", "an aggregate operation sums over groups of rows"),
    "SELECT": ("SELECT", "an expression gives one value; joins and aggregations are operations of the project"),
}
"""The construct that a word belongs to in SQL, and how it is written here."""
