"""Makes the files of the insurance sample, the same bytes every time, as dirty as such files are.

    python tools/make_insurance_data.py [FOLDER]

FOLDER defaults to the data folder of the sample. January and February come from an old system: CSV in windows-1252 with
lines before the header, remarks, German dates and numbers, line breaks in fields, payments that were delivered twice,
and rows that make no sense. Since March a new system delivers JSON lines. Contracts are lines of fixed width, treaties
are a workbook, reserves and rates say from when until when they hold.
"""

import gzip
import io
import json
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from xml.sax.saxutils import escape

from tools.make_sample_data import Dice

SAMPLE_DATA = Path(__file__).parents[1] / "src" / "clew" / "sample" / "insurance" / "data"
MONTHS = ("2026-01", "2026-02", "2026-03")
LINES = {"KH": "motor liability", "VK": "motor hull", "WG": "home", "HP": "liability"}
RATES = {"EUR": ("1.000000",) * 4, "CHF": ("1.058200", "1.063100", "1.049700", "1.055000"),
         "GBP": ("1.151000", "1.148300", "1.160200", "1.155500")}  # fmt: skip
"""Euros for one unit, in December and in the first three months."""
REMARKS = (
    *("", "", ""),
    "Teilzahlung",
    "Vergleich; siehe Akte",
    'Kfz-Werkstatt "Müller & Söhne"',
    "Prüfung\nabgeschlossen",
    "Rückfrage beim Kunden,\nAntwort fehlt",
    "Größe unbekannt",
)


@dataclass(frozen=True)
class Contract:
    """A contract as the mainframe knows it."""

    number: str
    line: str
    premium: Decimal
    begins: date
    ends: date | None


@dataclass(frozen=True)
class Payment:
    """A payment as it should have been delivered."""

    id: str
    claim: str
    contract: str
    loss: date
    booked: date
    currency: str
    amount: Decimal
    is_large: bool
    remark: str


def contracts(dice: Dice) -> list[Contract]:
    """What is insured."""
    found = []
    for number in range(1, 121):
        begins = date(2024, 1, 1) + timedelta(days=dice.number(0, 760))
        ends = begins + timedelta(days=dice.one_of((365, 730))) if dice.number(1, 10) <= 3 else None
        premium = Decimal(dice.number(80_000, 4_500_000)) / 100
        found.append(Contract(f"V{number:06}", dice.one_of(tuple(LINES)), premium, begins, ends))
    return found


def payments(dice: Dice, insured: Sequence[Contract], month: str, first: int) -> list[Payment]:
    """Payments of a month. Every third is for a claim that had one before, as far as there is one."""
    start = date.fromisoformat(f"{month}-01")
    found: list[Payment] = []
    claims: list[tuple[str, str, date]] = []
    for number in range(first, first + 160):
        booked = start + timedelta(days=dice.number(0, 27))
        earlier = [each for each in claims if each[2] < booked]
        if earlier and dice.number(1, 3) == 1:
            claim, contract, loss = dice.one_of(earlier)
        else:
            contract = dice.one_of(insured).number
            loss = booked - timedelta(days=dice.number(1, 22) ** 2)
            claim = f"S{loss.year}-{number:05}"
            claims.append((claim, contract, loss))
        cents = dice.number(20, 400) * dice.number(2, 1_600)
        amount = Decimal(-cents if dice.number(1, 25) == 1 else cents) / 100
        currency = dice.one_of(("EUR", "EUR", "EUR", "EUR", "CHF", "GBP"))
        is_large = amount > 3_000
        remark = dice.one_of(REMARKS)
        found.append(Payment(f"Z{number:06}", claim, contract, loss, booked, currency, amount, is_large, remark))
    return found


def german(amount: Decimal) -> str:
    """1234.5 as 1.234,50."""
    return f"{amount:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


def old_system(dice: Dice, month: str, paid: Sequence[Payment]) -> bytes:
    """A delivery of the old system: a payment may stand in it twice, the second time corrected."""
    lines = [
        f"Schadenzahlungen {month};;;;;;;;;",
        "Erstellt von Abt. Schaden – vertraulich",
        "",
        "Zahl-Nr.; Schaden-Nr. ;Vertrag;Schadentag;Buchungstag;Währung;Zahlung;Großschaden;Stand;Bemerkung",
    ]
    for position, each in enumerate(paid):
        if position and position % 50 == 0:
            lines.append(f"# Seite {position // 50}")
        amounts = [each.amount]
        if dice.number(1, 20) == 1:
            amounts = [each.amount + Decimal("10.00"), each.amount]
        for version, amount in enumerate(amounts, start=1):
            remark = dice.one_of(("n/a", "-")) if not each.remark else each.remark
            if ";" in remark or '"' in remark or "\n" in remark:
                remark = '"' + remark.replace('"', '""') + '"'
            claim = f" {each.claim} " if dice.number(1, 5) == 1 else each.claim
            large = dice.one_of(("ja", "J", "Ja")) if each.is_large else dice.one_of(("nein", "N"))
            loss, booked = f"{each.loss:%d.%m.%Y}", f"{each.booked:%d.%m.%Y}"
            fields = (each.id, claim, each.contract, loss, booked, each.currency, german(amount), large)
            lines.append(";".join((*fields, str(version), remark)))
    bad = (
        f"Z9{month[-1]}0001;S2026-99991;V000001;31.02.2026;05.01.2026;EUR;100,00;nein;1;Datum?",
        f"Z9{month[-1]}0002;S2026-99992;V000002;02.01.2026;05.01.2026;EUR;12,34,50;nein;1;n/a",
        f"Z9{month[-1]}0003;;V000003;02.01.2026;05.01.2026;EUR;75,00;nein;1;ohne Schaden-Nr.",
        f"Z9{month[-1]}0004;S2026-99994;V000004;02.01.2026;05.01.2026;EUR;n/a;vielleicht;1;-",
    )
    lines[20:20] = bad[:2]
    lines += bad[2:]
    return ("\r\n".join(line.replace("\n", "\r\n") for line in lines) + "\r\n").encode("cp1252")


def correction(delivered: bytes) -> bytes:
    """One of the bad rows, as someone has corrected it: an amount that could be read in two ways."""
    text = delivered.decode("cp1252")
    line = text[: text.index("Z910002")].count("\n") + 1
    columns = "payment_id,claim_id,contract,loss_date,booked_on,currency,amount,is_large,version,remark"
    row = f"payments/zahlungen_2026-01.csv,{line},Z910002,S2026-99992,V000002,02.01.2026,05.01.2026,EUR"
    row = f'{row},"1.234,50",nein,1,n/a'
    return f"_source_file,_source_line,{columns}\n{row}\n".encode()


def new_system(paid: Sequence[Payment]) -> bytes:
    """A delivery of the new system."""
    rows = (
        {
            "paymentId": each.id,
            "claim": each.claim,
            "contract": each.contract,
            "lossDate": each.loss.isoformat(),
            "bookedAt": f"{each.booked.isoformat()}T14:30:00",
            "currency": each.currency,
            "amount": str(each.amount),
            "large": each.is_large,
            "remark": each.remark or None,
        }
        for each in paid
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def of_fixed_width(listed: Iterable[Contract]) -> bytes:
    """Contracts as the mainframe prints them: number, line, premium, begin and end."""
    lines = ["* BESTAND 31.03.2026"]
    for each in listed:
        ends = f"{each.ends:%Y%m%d}" if each.ends else "99991231"
        lines.append(f"{each.number:<10}{each.line:<3}{german(each.premium):>14}{each.begins:%Y%m%d}{ends}")
    return ("\n".join(lines) + "\n").encode("cp850")


def reserves(dice: Dice, paid: Sequence[Payment]) -> bytes:
    """What is set aside for each claim, in euros, changed at the end of some months."""
    rows = []
    for claim in sorted({each.claim for each in paid}):
        if dice.number(1, 5) <= 2:
            continue
        amounts = [Decimal(dice.number(10_000, 4_000_000)) / 100 for _ in range(dice.one_of((1, 1, 2)))]
        begins = ["2026-01-01", "2026-03-01"][: len(amounts)]
        ends = [*begins[1:], None]
        for amount, begin, end in zip(amounts, begins, ends, strict=True):
            row = {"claim": claim, "reserve": str(amount), "_period_from": begin, "_period_to": end}
            rows.append({name: value for name, value in row.items() if value is not None})
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def rates() -> bytes:
    """Exchange rates, each until the next."""
    lines = ["currency,rate,_period_from,_period_to"]
    begins = ("2025-12-01", "2026-01-01", "2026-02-01", "2026-03-01", "")
    for currency, listed in RATES.items():
        lines += [f"{currency},{rate},{begins[at]},{begins[at + 1]}" for at, rate in enumerate(listed)]
    return ("\n".join(lines) + "\n").encode()


TREATIES = (
    ("KH", "0.25", "20000", "500000", "2024-01-01", "2026-01-01"),
    ("KH", "0.30", "25000", "500000", "2026-01-01", ""),
    ("VK", "0.10", "15000", "100000", "2024-01-01", ""),
    ("WG", "0.40", "10000", "250000", "2024-01-01", "2025-07-01"),
    ("WG", "0.35", "10000", "300000", "2025-07-01", ""),
    ("HP", "0.50", "5000", "1000000", "2024-01-01", ""),
)
"""Line, quota share, retention and limit of the excess of loss, from and until which day losses fall under it."""


def workbook() -> bytes:
    """The treaties as someone keeps them: a title, an empty row, and a second sheet with notes."""
    rows: list[Sequence[str | Decimal]] = [
        ("Reinsurance treaties",),
        (),
        ("Line", "Quota share", "Retention", "Limit", "Valid from", "Valid until"),
    ]
    rows += [
        (line, Decimal(share), Decimal(retention), Decimal(limit), german_day(begin), german_day(end))
        for line, share, retention, limit, begin, end in TREATIES
    ]
    return _workbook({"Notes": [("Signed copies are with the legal department.",)], "Treaties": rows})


def german_day(text: str) -> str:
    """2026-01-31 as 31.01.2026, and a dash for no day."""
    return f"{date.fromisoformat(text):%d.%m.%Y}" if text else "-"


_OPEN = "http://schemas.openxmlformats.org"


def _workbook(sheets: dict[str, Sequence[Sequence[str | Decimal]]]) -> bytes:
    names = "".join(f'<sheet name="{name}" sheetId="{at}" r:id="rId{at}"/>' for at, name in enumerate(sheets, start=1))
    links = "".join(
        f'<Relationship Id="rId{at}" Type="{_OPEN}/officeDocument/2006/relationships/worksheet"'
        f' Target="worksheets/sheet{at}.xml"/>'
        for at in range(1, len(sheets) + 1)
    )
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{at}.xml"'
        ' ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for at in range(1, len(sheets) + 1)
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_OPEN}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/xl/workbook.xml"'
        ' ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
        f"{types}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{_OPEN}/package/2006/relationships"><Relationship Id="rId1"'
        f' Type="{_OPEN}/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_OPEN}/spreadsheetml/2006/main"'
        f' xmlns:r="{_OPEN}/officeDocument/2006/relationships"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_OPEN}/package/2006/relationships">{links}'
        "</Relationships>",
    }
    for at, rows in enumerate(sheets.values(), start=1):
        cells = "".join(f'<row r="{row}">{"".join(_cells(row, values))}</row>' for row, values in enumerate(rows, 1))
        files[f"xl/worksheets/sheet{at}.xml"] = (
            f'<worksheet xmlns="{_OPEN}/spreadsheetml/2006/main"><sheetData>{cells}</sheetData></worksheet>'
        )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
            archive.writestr(zipfile.ZipInfo(name, (2026, 4, 1, 0, 0, 0)), head + text)
    return packed.getvalue()


def _cells(row: int, values: Sequence[str | Decimal]) -> Iterator[str]:
    for column, value in zip("ABCDEF", values, strict=False):
        if isinstance(value, Decimal):
            yield f'<c r="{column}{row}"><v>{value}</v></c>'
        else:
            yield f'<c r="{column}{row}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'


def everything() -> dict[str, bytes]:
    """The files by their paths below the data folder."""
    dice = Dice(20260401)
    insured = contracts(dice)
    paid = {month: payments(dice, insured, month, 1 + 1000 * at) for at, month in enumerate(MONTHS)}
    january, february = (old_system(dice, month, paid[month]) for month in MONTHS[:2])
    return {
        "payments/zahlungen_2026-01.csv": january,
        "payments/zahlungen_2026-02.csv.gz": gzip.compress(february, mtime=0),
        "payments/payments_2026-03.jsonl": new_system(paid["2026-03"]),
        "contracts.txt": of_fixed_width(insured),
        "reserves.jsonl": reserves(dice, [each for listed in paid.values() for each in listed]),
        "rates.csv": rates(),
        "treaties.xlsx": workbook(),
        "corrections/zahlungen_2026-01.csv": correction(january),
    }


def main(folder: Path) -> None:
    """Write them."""
    for name, content in everything().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE_DATA)
