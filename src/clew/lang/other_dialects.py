"""What people know from SQL and spreadsheets, and how it is written here. Only messages use it."""

from collections.abc import Mapping

_TO_TYPE = "TO_DECIMAL, TO_INTEGER, TO_DATE or TO_STRING"
_IFNULL = "write IFNULL(value, replacement)"
_CASE = "write CASE WHEN condition THEN value ELSE otherwise END"
_JOIN = "add the other dataset under `joins`, then write alias.column"
_TODAY = "write TODAY()"

FUNCTIONS_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("NVL", "IFNA", "ZEROIFNULL"), _IFNULL),
    **dict.fromkeys(("IFS", "NVL2"), _CASE),
    **dict.fromkeys(("CHOOSE", "DECODE"), "write SWITCH(value, candidate, result, ..., otherwise)"),
    "IIF": "write IF(condition, value, otherwise)",
    **dict.fromkeys(("VLOOKUP", "XLOOKUP", "HLOOKUP", "LOOKUP", "INDEX", "MATCH"), _JOIN),
    **dict.fromkeys(("SUMIF", "SUMIFS"), "write SUM_IF(value, condition)"),
    **dict.fromkeys(("COUNTIF", "COUNTIFS"), "write COUNT_IF(condition)"),
    **dict.fromkeys(("AVERAGEIF", "AVERAGEIFS", "AVG_IF"), "write AVG(IF(condition, value, NULL))"),
    **dict.fromkeys(("AVERAGE", "MEAN"), "write AVG(value)"),
    **dict.fromkeys(("CAST", "CONVERT", "VALUE"), f"write {_TO_TYPE}"),
    **dict.fromkeys(("TRY_CAST", "TRY_CONVERT", "IFERROR"), "write TRY_TO_DECIMAL, TRY_TO_INTEGER or TRY_TO_DATE"),
    **dict.fromkeys(("NOW", "GETDATE", "CURDATE", "CURRENT_DATE", "CURRENT_TIMESTAMP", "SYSDATE"), _TODAY),
    **dict.fromkeys(("LENGTH", "CHAR_LENGTH"), "write LEN(text)"),
    **dict.fromkeys(("SUBSTR", "MID"), "write SUBSTRING(text, start, length)"),
    **dict.fromkeys(("CONCATENATE", "TEXTJOIN", "CONCAT_WS"), "write CONCAT(a, b, ...)"),
    **dict.fromkeys(("INSTR", "SEARCH", "CHARINDEX", "POSITION", "LOCATE", "STRPOS"), "write FIND(text, part)"),
    **dict.fromkeys(("SPLIT_PART", "TEXTSPLIT"), "write SPLIT(text, separator, number)"),
    **dict.fromkeys(("REGEXP", "RLIKE", "REGEXP_LIKE", "REGEXP_MATCHES"), "write REGEX_MATCH(text, pattern)"),
    **dict.fromkeys(("REGEXP_EXTRACT", "REGEXP_SUBSTR"), "write REGEX_EXTRACT(text, pattern, group)"),
    "REGEXP_REPLACE": "write REGEX_REPLACE(text, pattern, replacement)",
    **dict.fromkeys(("INITCAP", "TITLE"), "write PROPER(text)"),
    **dict.fromkeys(("REPT", "REPLICATE"), "write REPEAT(text, count)"),
    **dict.fromkeys(("SHA2", "SHA256", "SHA", "MD5", "SHA1"), "write HASH(text), which is SHA-256"),
    **dict.fromkeys(("LTRIM", "RTRIM"), "write TRIM(text)"),
    **dict.fromkeys(("INT", "TRUNCATE", "ROUNDDOWN"), "write TRUNC(number, digits)"),
    "ROUNDUP": 'write ROUND(number, digits, "up")',
    **dict.fromkeys(("BROUND", "BANKERS_ROUND"), 'write ROUND(number, digits, "half_even")'),
    "CEILING": "write CEIL(number)",
    **dict.fromkeys(("POW", "POWERS"), "write POWER(base, exponent)"),
    "LOG10": "write LOG(number, 10)",
    "LOG2": "write LOG(number, 2)",
    "ISBLANK": "write ISNULL(value)",
    "SUMPRODUCT": "write SUM(a * b)",
    "COUNTA": "write COUNT(value)",
    "COUNTD": "write COUNT_DISTINCT(value)",
    "UCASE": "write UPPER(text)",
    "LCASE": "write LOWER(text)",
    "TEXT": "write TO_STRING(value)",
    "QUARTER": "write CEIL(MONTH(date) / 3)",
    "DATEVALUE": "write TO_DATE(text)",
    "DATE_ADD": "write DATEADD(date, days)",
    **dict.fromkeys(("DATE_DIFF", "DATEDIF", "TIMESTAMPDIFF"), 'write DATEDIFF(later, earlier, "month")'),
    **dict.fromkeys(("MONTHS_BETWEEN",), 'write DATEDIFF(later, earlier, "month")'),
    **dict.fromkeys(("ADD_MONTHS", "DATEADD_MONTHS"), "write EDATE(date, months)"),
    **dict.fromkeys(("LAST_DAY", "END_OF_MONTH"), "write EOMONTH(date)"),
    **dict.fromkeys(("DAYOFWEEK", "ISODOW"), "write WEEKDAY(date)"),
    **dict.fromkeys(("STDEV", "STDDEV_SAMP"), "write STDDEV(value)"),
    **dict.fromkeys(("VAR", "VAR_SAMP"), "write VARIANCE(value)"),
    **dict.fromkeys(("PERCENTILE_CONT", "QUANTILE", "QUARTILE"), "write PERCENTILE(value, 0.25)"),
    **dict.fromkeys(("LISTAGG", "GROUP_CONCAT", "ARRAY_TO_STRING"), "write STRING_AGG(text, separator)"),
    "MIN_BY": "write FIRST(value, order)",
    "MAX_BY": "write LAST(value, order)",
    "FIRST_VALUE": "write FIRST(value, order) OVER (PARTITION BY ...)",
    "LAST_VALUE": "write LAST(value, order) OVER (PARTITION BY ...)",
    **dict.fromkeys(("NTILE", "PERCENT_RANK", "CUME_DIST"), "calculate it from RANK() and COUNT_ALL() OVER (...)"),
    **dict.fromkeys(("RATIO_TO_REPORT", "SHARE"), "write value / SUM(value) OVER (PARTITION BY ...)"),
    **dict.fromkeys(("STR_TO_DATE", "PARSE_DATE"), "write TO_DATE(text, pattern)"),
    **dict.fromkeys(("FORMAT", "TO_CHAR", "DATE_FORMAT", "STRFTIME"), "write TO_STRING(value, pattern)"),
}
"""How the work of a function of another language is done here, by its name."""

_REGEX = "write REGEX_MATCH(text, pattern)"

WORDS_ELSEWHERE: Mapping[str, tuple[str, str]] = {
    "ILIKE": ("ILIKE", "write LOWER(text) LIKE pattern"),
    **{word: (word, _REGEX) for word in ("RLIKE", "REGEXP", "SIMILAR")},
    "XOR": ("XOR", "write a <> b"),
    "DIV": ("DIV", "write FLOOR(a / b)"),
    "SELECT": ("SELECT", "an expression gives one value; joins and aggregations are operations of the project"),
}
"""The construct that a word belongs to in SQL, and how it is written here."""
