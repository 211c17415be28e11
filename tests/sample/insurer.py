"""The insurance sample as plain Python reads and computes it: nothing here knows Clew."""

import csv
import gzip
import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from xml.etree import ElementTree

MONTHS = ("2026-01", "2026-02", "2026-03")
CENT = Decimal("0.01")


@dataclass(frozen=True)
class Paid:
    """A payment, as it is closed."""

    payment: str
    claim: str
    contract: str
    loss: date
    booked: date
    currency: str
    amount: Decimal
    month: str
    paid: Decimal = Decimal(0)
    line: str = ""
    ceded: Decimal = Decimal(0)
    line_of_file: int = 0

    @property
    def loss_quarter(self) -> str:
        return f"{self.loss.year}-Q{quarter(self.loss)}"

    @property
    def development(self) -> int:
        return 4 * (self.booked.year - self.loss.year) + quarter(self.booked) - quarter(self.loss)


@dataclass(frozen=True)
class Term:
    """A row that is in force for a time."""

    begins: date
    ends: date | None
    values: tuple[Decimal, ...]

    def holds(self, day: date) -> bool:
        return self.begins <= day and (self.ends is None or day < self.ends)


Terms = Mapping[str, Sequence[Term]]


def quarter(day: date) -> int:
    return (day.month + 2) // 3


def cents(value: Decimal) -> Decimal:
    return value.quantize(CENT, ROUND_HALF_UP)


def german_day(text: str) -> date:
    return datetime.strptime(text, "%d.%m.%Y").date()  # noqa: DTZ007 a day has no zone


def german_number(text: str) -> Decimal:
    if not re.fullmatch(r"-?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?", text):
        raise ValueError(text)
    return Decimal(text.replace(".", "").replace(",", "."))


class Insurer:
    """The data folder of the sample."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.bad: dict[str, list[int]] = {}
        """By month, the physical lines on which rows begin that cannot be read."""
        self.rates = self._rates()
        self.treaties = self._treaties()
        self.contracts = self._contracts()
        self.reserves = self._reserves()
        self.closed = {month: self._closed(month) for month in MONTHS}

    def in_force(self, terms: Terms, key: str, day: date) -> tuple[Decimal, ...] | None:
        found = [term.values for term in terms.get(key, ()) if term.holds(day)]
        assert len(found) <= 1
        return found[0] if found else None

    # Files

    def _delivered(self, month: str) -> Iterator[tuple[Paid, int]]:
        """The payments of a month, with their versions."""
        if month == "2026-03":
            for text in (self.data / f"payments/payments_{month}.jsonl").read_text("utf-8").splitlines():
                row = json.loads(text)
                booked = datetime.fromisoformat(row["bookedAt"]).date()
                loss = date.fromisoformat(row["lossDate"])
                amount = Decimal(row["amount"])
                yield (
                    Paid(row["paymentId"], row["claim"], row["contract"], loss, booked, row["currency"], amount, month),
                    1,
                )
            return
        name = self.data / f"payments/zahlungen_{month}.csv"
        raw = name.read_bytes() if name.exists() else gzip.decompress(name.with_suffix(".csv.gz").read_bytes())
        for fields, line in self._records(raw.decode("cp1252")):
            try:
                yield self._payment(fields, month, line)
            except ValueError:
                self.bad.setdefault(month, []).append(line)
        corrections = self.data / f"corrections/zahlungen_{month}.csv"
        if corrections.exists():
            with corrections.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    yield self._payment(list(row.values())[2:], month, 0)

    def _records(self, text: str) -> Iterator[tuple[list[str], int]]:
        """Records with the line on which they begin; a record ends where its quotes are closed."""
        record, begins, seen = "", 0, 0
        for number, line in enumerate(text.split("\r\n"), start=1):
            if number <= 3 or (not record and (not line or line.startswith("#"))):
                continue
            record, begins = (f"{record}\n{line}", begins) if record else (line, number)
            if record.count('"') % 2 == 0:
                seen += 1
                if seen > 1:
                    yield next(csv.reader(io.StringIO(record, newline=""), delimiter=";")), begins
                record = ""

    def _payment(self, fields: Sequence[str], month: str, at: int) -> tuple[Paid, int]:
        values = [value.strip() for value in fields]
        payment, claim, contract, loss, booked, currency, amount, large, version, _ = (
            None if value in {"", "n/a", "-"} else value for value in values
        )
        if not (payment and claim and contract and loss and booked and currency and amount and version):
            raise ValueError("a value is missing")
        if large is not None and large.casefold() not in {"ja", "j", "nein", "n"}:
            raise ValueError(large)
        days = german_day(loss), german_day(booked)
        paid = Paid(payment, claim, contract, *days, currency, german_number(amount), month, line_of_file=at)
        return paid, int(version)

    def _rates(self) -> Terms:
        found = defaultdict[str, list[Term]](list)
        with (self.data / "rates.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                ends = date.fromisoformat(row["_period_to"]) if row["_period_to"] else None
                begins = date.fromisoformat(row["_period_from"])
                found[row["currency"]].append(Term(begins, ends, (Decimal(row["rate"]),)))
        return found

    def _reserves(self) -> Terms:
        found = defaultdict[str, list[Term]](list)
        for text in (self.data / "reserves.jsonl").read_text("utf-8").splitlines():
            row = json.loads(text)
            ends = date.fromisoformat(row["_period_to"]) if "_period_to" in row else None
            begins = date.fromisoformat(row["_period_from"])
            found[row["claim"]].append(Term(begins, ends, (Decimal(row["reserve"]),)))
        return found

    def _treaties(self) -> Terms:
        found = defaultdict[str, list[Term]](list)
        with zipfile.ZipFile(self.data / "treaties.xlsx") as archive:
            sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet2.xml"))
        space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
        for row in list(sheet.iter(f"{space}row"))[3:]:
            line, share, retention, limit, begins, ends = ("".join(cell.itertext()) for cell in row.iter(f"{space}c"))
            until = None if ends == "-" else german_day(ends)
            values = (Decimal(share), Decimal(retention), Decimal(limit))
            found[line].append(Term(german_day(begins), until, values))
        return found

    def _contracts(self) -> dict[str, tuple[str, Decimal, date, date]]:
        found = {}
        for line in (self.data / "contracts.txt").read_bytes().decode("cp850").splitlines():
            if not line.startswith("*"):
                begins, ends = (datetime.strptime(line[at : at + 8], "%Y%m%d").date() for at in (27, 35))  # noqa: DTZ007
                premium = german_number(line[13:27].strip())
                found[line[:10].strip()] = (line[10:13].strip(), premium, begins, ends)
        return found

    # What comes out

    def _closed(self, month: str) -> list[Paid]:
        last: dict[str, tuple[Paid, int]] = {}
        for payment, version in self._delivered(month):
            if payment.payment not in last or last[payment.payment][1] <= version:
                last[payment.payment] = (payment, version)
        return [self._priced(payment) for payment, _ in last.values()]

    def _priced(self, each: Paid) -> Paid:
        rate = self.in_force(self.rates, each.currency, each.booked)
        assert rate is not None
        line = self.contracts[each.contract][0]
        paid = cents(each.amount * rate[0])
        treaty = self.in_force(self.treaties, line, each.loss)
        ceded = cents(paid * treaty[0]) if treaty else Decimal(0)
        return replace(each, paid=paid, line=line, ceded=ceded)

    @property
    def quarter(self) -> list[Paid]:
        return [each for month in MONTHS for each in self.closed[month]]

    def incurred(self) -> dict[str, tuple[Decimal, Decimal, Decimal, Decimal]]:
        """By claim: paid, incurred, what the quota share leaves, and what the excess of loss pays of it."""
        found = {}
        for claim in {each.claim for each in self.quarter}:
            rows = [each for each in self.quarter if each.claim == claim]
            paid = sum((each.paid for each in rows), Decimal(0))
            reserve = self.in_force(self.reserves, claim, date(2026, 3, 31))
            total = paid + (reserve[0] if reserve else 0)
            treaty = self.in_force(self.treaties, rows[0].line, min(each.loss for each in rows))
            kept = total - cents(total * treaty[0]) if treaty else total
            recovered = max(Decimal(0), min(kept - treaty[1], treaty[2])) if treaty else Decimal(0)
            found[claim] = (paid, total, kept, recovered)
        return found

    def triangle(self) -> dict[tuple[str, str, int], tuple[Decimal, Decimal]]:
        """By line, quarter of the loss and quarters since: what was paid, and what was paid so far."""
        cells = defaultdict[tuple[str, str, int], Decimal](Decimal)
        for each in self.quarter:
            cells[each.line, each.loss_quarter, each.development] += each.paid
        return {
            (line, loss, at): (
                value,
                sum(
                    (other for (kind, of, when), other in cells.items() if (kind, of) == (line, loss) and when <= at),
                    Decimal(0),
                ),
            )
            for (line, loss, at), value in cells.items()
        }

    def ratios(self) -> dict[str, tuple[Decimal, Decimal, Decimal]]:
        """By line: earned premium of the quarter, payments, and these in percent of it."""
        first, last = date(2026, 1, 1), date(2026, 3, 31)
        earned, paid = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
        for line, premium, begins, ends in self.contracts.values():
            days = (min(ends, last) - max(begins, first)).days + 1
            if begins <= last and ends >= first:
                earned[line] += cents(premium * days / 365)
        for each in self.quarter:
            paid[each.line] += each.paid
        return {line: (earned[line], paid[line], cents(paid[line] * 100 / earned[line])) for line in earned}
