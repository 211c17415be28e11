"""Makes the journal and the budgets of the sample workspace, the same bytes every time.

    python tools/make_sample_data.py [FOLDER]

FOLDER defaults to the data folder of the sample. Accounts, cost centres and exchange rates are written by hand and are
not touched. Only `Random.random` and plain arithmetic decide anything, since these give the same numbers everywhere.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

T = TypeVar("T")

SAMPLE_DATA = Path(__file__).parents[1] / "src" / "clew" / "sample" / "workspace" / "data"
SEED = 20260131
ENTRIES_PER_MONTH = {1: 560, 2: 520, 3: 580}
TEST_ENTRIES_PER_MONTH = {1: 6, 2: 4, 3: 5}
MONTH_NAMES = {1: "January", 2: "February", 3: "March"}
FIRST_PARQUET_MONTH = 3

BUDGET_RATES = {"USD": 1.0, "EUR": 1.08, "GBP": 1.27, "JPY": 0.0065}
"""What one unit of a currency was thought to be worth in USD when the budget was made."""

DEPARTMENTS = ("C100", "C110", "C120", "C200", "C210", "C220", "C300")
PROJECTS = ("P410", "P420", "P430")
SELLING = ("C200", "C210", "C220", *PROJECTS)
CURRENCIES = {
    "Americas": (("USD", 0.85), ("GBP", 0.15)),
    "Europe": (("EUR", 0.70), ("GBP", 0.25), ("USD", 0.05)),
    "Asia": (("JPY", 0.75), ("USD", 0.25)),
}
REGIONS = {
    "C100": "Americas", "C110": "Americas", "C120": "Europe", "C200": "Americas", "C210": "Europe", "C220": "Asia",
    "C300": "Europe", "P410": "Europe", "P420": "Americas", "P430": "Asia",
}  # fmt: skip

PRODUCTS = (("4000", "goods"), ("4000", "spare parts"), ("4100", "support"), ("4100", "training"), ("4200", "licences"))
PURCHASES = (
    ("5000", "components"), ("5000", "packaging"), ("5230", "office supplies"), ("5240", "cloud hosting"),
    ("5240", "software subscription"), ("5250", "legal advice"), ("5250", "consulting"), ("5260", "trade fair"),
    ("5260", "online campaign"),
)  # fmt: skip
JOURNEYS = {
    "USD": ("flight to Chicago", "rental car, customer visit", "hotel, supplier audit"),
    "EUR": ("train Köln–Paris", "hôtel, visite client", "flight to Milano"),
    "GBP": ("rail London–York", "hotel Edinburgh", "taxi, customer visit"),
    "JPY": ("新幹線 Tokyo–Osaka", "hotel Nagoya", "flight to Sapporo"),
}
SATURDAY = 5
NEW_YEAR = date(2026, 1, 1)
BALANCE = "balance"
OPERATING = "operating"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an entry: debits are positive, credits negative."""

    account_code: str
    description: str
    amount: Decimal
    category: str = BALANCE
    cost_center: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A journal entry before it has a number."""

    posting_date: date
    currency: str
    entered_by: str
    lines: tuple[Line, ...]


class Dice:
    """Chance with a memory: the same seed gives the same throws on every machine and Python."""

    def __init__(self, seed: int) -> None:
        self._throw = Random(seed).random  # noqa: S311 sample data keep no secret

    def one_of(self, choices: Sequence[T]) -> T:
        """Any of them, all equally likely."""
        return choices[int(self._throw() * len(choices))]

    def weighted(self, choices: Iterable[tuple[T, float]]) -> T:
        """One of them, by weights that add up to 1."""
        rest = self._throw()
        chosen: T
        for chosen, weight in choices:  # noqa: B007 the last one stands in for rounding
            rest -= weight
            if rest < 0:
                break
        return chosen

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both possible."""
        return low + int(self._throw() * (high - low + 1))

    def amount(self, low: int, high: int, currency: str) -> Decimal:
        """An amount worth between so many USD, small ones more likely, as the currency writes it."""
        throw = self._throw()
        dollars = low + (high - low) * throw * throw
        units = dollars / BUDGET_RATES[currency]
        if currency == "JPY":
            return Decimal(int(units / 10) * 10).quantize(Decimal("0.01"))
        return Decimal(int(units * 100)) / 100

    def user(self) -> str:
        """Who entered something by hand."""
        return f"user-{self.number(1, 24):02}"


def share(amount: Decimal, percent: int) -> Decimal:
    """So many hundredths of an amount, cut to whole cents."""
    return Decimal(int(amount * percent)) / 100


def balanced(debits: Sequence[Line], account_code: str, description: str) -> tuple[Line, ...]:
    """The lines, and the one that balances them."""
    return (*debits, Line(account_code, description, -sum((line.amount for line in debits), Decimal(0))))


def customer_invoice(dice: Dice, currency: str, center: str) -> tuple[Line, ...]:
    """A sale on credit; of a licence, only the first quarter is revenue yet."""
    number = f"INV-{dice.number(20000, 29999)}"
    account, product = dice.one_of(PRODUCTS)
    amount = dice.amount(400, 18000, currency)
    receivable = Line("1100", f"Invoice {number}", amount)
    if account != "4200":
        return receivable, Line(account, f"Invoice {number}, {product}", -amount, "sales", center)
    now = share(amount, 25)
    return (
        receivable,
        Line(account, f"Invoice {number}, {product}", -now, "sales", center),
        Line("2300", f"Invoice {number}, later quarters", now - amount),
    )


def supplier_invoice(dice: Dice, currency: str, center: str) -> tuple[Line, ...]:
    """A purchase on credit, of one to three things."""
    number = f"S-{dice.number(1000, 9999)}"
    debits = []
    for _ in range(dice.weighted(((1, 0.5), (2, 0.3), (3, 0.2)))):
        account, thing = dice.one_of(PURCHASES)
        amount = dice.amount(60, 3800, currency)
        debits.append(Line(account, f"Supplier {number}, {thing}", amount, OPERATING, center))
    return balanced(debits, "2000", f"Supplier {number}")


def expense_report(dice: Dice, currency: str, center: str) -> tuple[Line, ...]:
    """What an employee laid out on a journey."""
    number = f"ER-{dice.number(300, 999)}"
    travel = Line(
        "5210", f"{number}, {dice.one_of(JOURNEYS[currency])}", dice.amount(80, 2400, currency), OPERATING, center
    )
    meals = Line("5220", f"{number}, meals", dice.amount(15, 260, currency), OPERATING, center)
    return balanced((travel, meals), "2000", f"Expense report {number}")


def receipt(dice: Dice, currency: str, _center: str) -> tuple[Line, ...]:
    """A customer pays."""
    description = f"Receipt INV-{dice.number(20000, 29999)}"
    return balanced((Line("1000", description, dice.amount(400, 16000, currency)),), "1100", description)


def payment(dice: Dice, currency: str, _center: str) -> tuple[Line, ...]:
    """We pay a supplier."""
    description = f"Payment S-{dice.number(1000, 9999)}"
    return balanced((Line("2000", description, dice.amount(100, 5000, currency)),), "1000", description)


BUSINESS: tuple[tuple[Callable[[Dice, str, str], tuple[Line, ...]], float], ...] = (
    (customer_invoice, 0.27),
    (supplier_invoice, 0.23),
    (expense_report, 0.20),
    (receipt, 0.16),
    (payment, 0.14),
)


def everyday(dice: Dice, days: Sequence[date], count: int) -> Iterator[Entry]:
    """The business of the month."""
    for _ in range(count):
        build = dice.weighted(BUSINESS)
        center = dice.one_of(SELLING if build is customer_invoice else DEPARTMENTS + PROJECTS)
        currency = dice.weighted(CURRENCIES[REGIONS[center]])
        yield Entry(dice.one_of(days), currency, dice.user(), build(dice, currency, center))


def month_end(dice: Dice, last_day: date) -> Iterator[Entry]:
    """What is posted once a month for every cost centre: payroll, rent, depreciation, accruals."""
    month = MONTH_NAMES[last_day.month]
    for center in DEPARTMENTS + PROJECTS:
        currency = CURRENCIES[REGIONS[center]][0][0]
        salaries = dice.amount(14000, 30000, currency)
        payroll = (
            Line("5100", f"Payroll {month}", salaries, "payroll", center),
            Line("5110", f"Payroll {month}, social contributions", share(salaries, 21), "payroll", center),
        )
        yield Entry(last_day, currency, "batch", balanced(payroll, "2200", f"Payroll {month}"))
        rent = Line("5200", f"Rent {month}", dice.amount(2500, 6000, currency), OPERATING, center)
        yield Entry(last_day, currency, "batch", balanced((rent,), "1300", f"Rent {month}, paid in advance"))
        wear = Line("5280", f"Depreciation {month}", dice.amount(300, 1800, currency), "depreciation", center)
        yield Entry(last_day, currency, "batch", balanced((wear,), "1590", f"Depreciation {month}"))
        accrual = Line("5250", f"Accrual {month}, audit", dice.amount(200, 1500, currency), OPERATING, center)
        yield Entry(last_day, currency, dice.user(), balanced((accrual,), "2100", f"Accrual {month}, audit"))


def test_entries(dice: Dice, days: Sequence[date], count: int) -> Iterator[Entry]:
    """Postings that were made to try the system out, and then forgotten."""
    for number in range(1, count + 1):
        text = f"TEST posting {number}, please ignore"
        center = dice.one_of(DEPARTMENTS)
        debits = [
            Line(account, text, dice.amount(1000, 9000, "EUR"), OPERATING, center)
            for account in ("5230", "5240")[: dice.number(1, 2)]
        ]
        yield Entry(dice.one_of(days), "EUR", dice.user(), balanced(debits, "2000", text))


def landmarks(entries: list[Entry]) -> None:
    """Put the three entries that the documentation follows at their numbers in January."""
    consulting = Line("5250", "Supplier S-4711, ledger migration", Decimal("56043.96"), OPERATING, "C120")
    trial = Line("5240", "TEST posting Q1", Decimal("2500.00"), OPERATING, "C110")
    meals = Line("5220", "ER-412, meals", Decimal("84.50"), OPERATING, "P410")
    journey = Line("5210", "ER-412, flight and hotel, site visit", Decimal("1200.00"), OPERATING, "P410")
    for number, lines in {
        17: balanced((consulting,), "2000", "Supplier S-4711"),
        99: balanced((trial,), "2000", "TEST posting Q1"),
        231: balanced((meals, journey), "2000", "Expense report ER-412"),
    }.items():
        entries[number - 1] = replace(entries[number - 1], currency="EUR", entered_by="user-07", lines=lines)


def entries_of(dice: Dice, month: int) -> list[Entry]:
    """All entries of a month in the order of their dates."""
    first, end = date(2026, month, 1), date(2026, month + 1, 1)
    every_day = [first + timedelta(days=n) for n in range((end - first).days)]
    days = [day for day in every_day if day.weekday() < SATURDAY and day != NEW_YEAR]
    entries = [
        *everyday(dice, days, ENTRIES_PER_MONTH[month]),
        *test_entries(dice, days, TEST_ENTRIES_PER_MONTH[month]),
        *month_end(dice, days[-1]),
    ]
    entries.sort(key=lambda entry: entry.posting_date)
    if month == 1:
        landmarks(entries)
    return entries


SCHEMA = pa.schema([
    ("journal_id", pa.string()),
    ("line_number", pa.int64()),
    ("posting_date", pa.date32()),
    ("account_code", pa.string()),
    ("cost_center", pa.string()),
    ("description", pa.string()),
    ("currency", pa.string()),
    ("amount_local", pa.decimal128(18, 2)),
    ("category", pa.string()),
    ("entered_by", pa.string()),
    ("_period", pa.string()),
])  # fmt: skip

Row = dict[str, object]


def rows_of(entries: Iterable[Entry], first_number: int) -> list[Row]:
    """The lines of numbered entries, one row each."""
    return [
        {
            "journal_id": f"JE-{number:05}",
            "line_number": position,
            "posting_date": entry.posting_date,
            "account_code": line.account_code,
            "cost_center": line.cost_center,
            "description": line.description,
            "currency": entry.currency,
            "amount_local": line.amount.quantize(Decimal("0.01")),
            "category": line.category,
            "entered_by": entry.entered_by,
            "_period": f"{entry.posting_date:%Y-%m}",
        }
        for number, entry in enumerate(entries, first_number)
        for position, line in enumerate(entry.lines, 1)
    ]


def spending(entries: Iterable[Entry]) -> dict[tuple[str, str], float]:
    """USD at budget rates by account and cost centre, with project travel where the close will put it."""
    totals: dict[tuple[str, str], float] = defaultdict(float)
    for entry in entries:
        for line in entry.lines:
            if line.cost_center is None or "TEST" in line.description:
                continue
            is_project_travel = line.account_code == "5210" and line.cost_center in PROJECTS
            account = "5290" if is_project_travel else line.account_code
            totals[account, line.cost_center] += float(line.amount) * BUDGET_RATES[entry.currency]
    return totals


def budget_rows(dice: Dice, period: str, entries: Iterable[Entry]) -> Iterator[Row]:
    """Budgets near what was spent, in hundreds; some have a supplement, approved or still a draft."""
    for (account, center), dollars in sorted(spending(entries).items()):
        hundreds = round(dollars * dice.number(85, 115) / 100 / 100)
        sign = -1 if account.startswith("4") else 1
        versions = [("approved", "original", hundreds or sign)]
        if dice.number(1, 10) == 1:
            versions.append(("approved", "supplement", sign * dice.number(2, 20)))
        if dice.number(1, 15) == 1:
            versions.append(("draft", "supplement", sign * dice.number(5, 40)))
        for status, kind, amount in versions:
            yield {
                "account_code": account,
                "cost_center": center,
                "status": status,
                "kind": kind,
                "amount_usd": Decimal(amount * 100).quantize(Decimal("0.01")),
                "_period": period,
            }


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """UTF-8, a header, an empty field for NULL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    """One part of the new layout."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    pq.write_table(table, path, compression="zstd", store_schema=False)


def make(folder: Path) -> None:
    """Write all files under a folder."""
    dice = Dice(SEED)
    budgets: list[Row] = []
    next_number = 1
    for month in ENTRIES_PER_MONTH:
        entries = entries_of(dice, month)
        period = f"2026-{month:02}"
        rows = rows_of(entries, next_number)
        next_number += len(entries)
        budgets.extend(budget_rows(dice, period, entries))
        if month < FIRST_PARQUET_MONTH:
            write_csv(folder / "journal" / f"journal_{period}.csv", rows)
        else:
            write_parquet(folder / "journal" / period / "part-00001.parquet", rows)
    write_csv(folder / "budgets.csv", budgets)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE_DATA)
