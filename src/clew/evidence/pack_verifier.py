"""Verifies an evidence pack of Clew. Needs Python 3.9 or later and nothing else: no Clew, no network, no secret.

    python3 -I verify.py                      the pack that this file lies in, unpacked
    python3 -I verify.py pack.zip             a pack as it was sent
    python3 -I verify.py pack.zip --key HEX   and require that this key signed it

Every pack contains this file. Take it from a source that you trust, and compare the fingerprint of the key with one
that you did not get with the pack: whoever can replace the pack can replace what is in it.

What it checks:

1. statement   The signature (Ed25519, RFC 8032) over the statement (in-toto, in a DSSE envelope), and the SHA-256
               digest that the statement has for every member. There are no other members.
2. chain       The events of each run follow each other without a gap, each holds the hash of the one before it, and the
               ledger knows the last one. Plans and descriptions of files have the digests that events name. (That the
               hashes themselves are right needs the secret key of the environment: `clew verify PACK` checks it there.)
3. trees       Every explanation: values in it are those of the rows behind it, down to the rows of the inputs; every
               expression is calculated again here, by the plan of its run, and gives the value that was stored.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import math
import re
import sys
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

ENVELOPE = "statement.dsse.json"
PUBLIC_KEY = "public-key.pem"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:clew:evidence-pack:v1"
NOT_YET = "0" * 64
MOST_FINDINGS = 100


class Report:
    """What was checked, and what was found to be wrong."""

    def __init__(self) -> None:
        self.checked: Dict[str, int] = {}
        self.findings: List[str] = []
        self.fingerprint = ""

    def count(self, kind: str, number: int = 1) -> None:
        """Something was checked."""
        self.checked[kind] = self.checked.get(kind, 0) + number

    def find(self, problem: str) -> None:
        """Something is wrong."""
        self.findings.append(problem)


def verify(place: Path, key: Optional[str] = None) -> Report:
    """Check a pack, in a file or unpacked in a folder."""
    report = Report()
    try:
        members = read_folder(place) if place.is_dir() else read_archive(place)
    except (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        report.find(f"the pack cannot be read: {error}")
        return report
    except Exception as error:  # damaged compression has an error of its own in each method
        report.find(f"the pack cannot be read: {type(error).__name__}: {error}")
        return report
    check_statement(members, key, report)
    try:
        pack = Pack(members)
        check_chain(pack, report)
        check_trees(pack, report)
        check_rows(pack, report)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        report.find(f"a member is not what it should be: {type(error).__name__}: {error}")
    return report


def read_archive(path: Path) -> Dict[str, bytes]:
    """The members of a pack."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if len(set(names)) != len(names):
            raise ValueError("a member occurs twice")
        return {name: archive.read(name) for name in names}


def read_folder(folder: Path) -> Dict[str, bytes]:
    """The members of a pack that was unpacked."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


# 1. The statement


def check_statement(members: Dict[str, bytes], key: Optional[str], report: Report) -> None:
    """The signature, and the digest of every member."""
    try:
        envelope = json.loads(members[ENVELOPE])
        payload = from_base64(envelope["payload"])
        signatures = [from_base64(each["sig"]) for each in envelope["signatures"]]
        kind = envelope["payloadType"]
        public = public_key_of(members[PUBLIC_KEY])
        statement = json.loads(payload)
        named = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    except (KeyError, ValueError, TypeError, IndexError) as error:
        report.find(f"{ENVELOPE} or {PUBLIC_KEY} is missing or damaged: {error}")
        return
    report.fingerprint = fingerprint_of(public)
    if key is not None and key.lower().replace(":", "") != report.fingerprint:
        report.find(f"the pack was signed with the key {report.fingerprint}, not with the one that was asked for")
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
    if len(signatures) != 1 or not is_signed(public, signed, signatures[0]):
        report.find("the signature of the statement is wrong")
    if [each.get("keyid") for each in envelope["signatures"]] != [report.fingerprint]:
        report.find("the envelope names another key")
    if set(envelope) != {"payload", "payloadType", "signatures"} or set(envelope["signatures"][0]) != {"keyid", "sig"}:
        report.find("the envelope has fields that it should not have")
    expected = (PAYLOAD_TYPE, STATEMENT_TYPE, PREDICATE_TYPE)
    if (kind, statement.get("_type"), statement.get("predicateType")) != expected:
        report.find("the statement is not one about an evidence pack of this version")
    if canonical(envelope) != members[ENVELOPE].decode("utf-8", "replace"):
        report.find("the envelope is not in the form in which it was written")
    report.count("signatures")
    for name in sorted(named.keys() | (members.keys() - {ENVELOPE})):
        if name not in members:
            report.find(f"{name} is missing")
        elif name not in named:
            report.find(f"{name} does not belong to the pack")
        elif hashlib.sha256(members[name]).hexdigest() != named[name]:
            report.find(f"{name} was changed")
        else:
            report.count("members")
            report.count("bytes", len(members[name]))


def from_base64(text: str) -> bytes:
    """Bytes, of which there is one text only."""
    found = base64.b64decode(text, validate=True)
    if base64.b64encode(found).decode("ascii") != text:
        raise ValueError("it is not in Base64")
    return found


def canonical(value: object) -> str:
    """The one text of a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


_BEFORE_THE_KEY = bytes.fromhex("302a300506032b6570032100")
"""What the DER form of a public key of Ed25519 begins with (RFC 8410)."""


def public_key_of(pem: bytes) -> bytes:
    """The 32 bytes of a public key in PEM."""
    found = re.fullmatch("-----BEGIN PUBLIC KEY-----\n(.+)\n-----END PUBLIC KEY-----\n", pem.decode("ascii"))
    if found is None:
        raise ValueError("it is not a public key")
    der = from_base64(found[1])
    if not der.startswith(_BEFORE_THE_KEY) or len(der) != len(_BEFORE_THE_KEY) + 32:
        raise ValueError("it is not a public key of Ed25519")
    return der[len(_BEFORE_THE_KEY) :]


def fingerprint_of(public: bytes) -> str:
    """SHA-256 of the key in DER; `openssl pkey -pubin -in public-key.pem -outform DER | sha256sum` gives the same."""
    return hashlib.sha256(_BEFORE_THE_KEY + public).hexdigest()


# Ed25519 as RFC 8032 describes it. Points have extended homogeneous coordinates (X, Y, Z, T) with x = X/Z, y = Y/Z.

_P = 2**255 - 19
_Q = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)
Point = Tuple[int, int, int, int]


def add_points(a: Point, b: Point) -> Point:
    """The sum of two points."""
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % _P, (a[1] + a[0]) * (b[1] + b[0]) % _P
    g, h = 2 * a[3] * b[3] * _D % _P, 2 * a[2] * b[2] % _P
    k, m, n, o = f - e, h - g, h + g, f + e
    return k * m % _P, n * o % _P, m * n % _P, k * o % _P


def times(number: int, point: Point) -> Point:
    """A multiple of a point."""
    result: Point = (0, 1, 1, 0)
    while number > 0:
        if number & 1:
            result = add_points(result, point)
        point = add_points(point, point)
        number >>= 1
    return result


def point_of(data: bytes) -> Optional[Point]:
    """The point that 32 bytes stand for; None if they stand for none."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P != 0:
        x = x * _ROOT % _P
    if (x * x - square) % _P != 0 or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


_BASE = point_of((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature of a message was made with the private half of a key."""
    if len(signature) != 64 or _BASE is None:
        return False
    a, r, s = point_of(public), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= _Q:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % _Q
    left, right = times(s, _BASE), add_points(r, times(challenge, a))
    same_x = (left[0] * right[2] - right[0] * left[2]) % _P == 0
    return same_x and (left[1] * right[2] - right[1] * left[2]) % _P == 0


# 2. The chain


class Pack:
    """The members of a pack, read."""

    def __init__(self, members: Dict[str, bytes]) -> None:
        self.members = members
        self.evidence: Dict[str, Any] = self.document("evidence.json")
        self.plans: Dict[str, Dict[str, Any]] = {
            run_id: self.document(run["plan"]) for run_id, run in self.evidence["runs"].items()
        }
        self.rows: Dict[Tuple[str, str], Dict[str, Any]] = {
            (row["run_id"], row["row_id"]): row for row in self.document("rows.json")["rows"] if row["row_id"]
        }

    def document(self, name: str) -> Any:
        """A member in JSON."""
        return json.loads(self.members[name])

    def lines(self, name: str) -> List[Dict[str, Any]]:
        """A member with a JSON document in each line."""
        return [json.loads(line) for line in self.members[name].decode("utf-8").splitlines()]


def check_chain(pack: Pack, report: Report) -> None:
    """Events, ledger, plans and descriptions of every run fit together."""
    for run_id, run in pack.evidence["runs"].items():
        events = pack.lines(run["events"])
        check_events(run_id, events, run["unsealed"], report)
        check_ledger(run_id, events, pack.lines(run["ledger"]), report)
        named = {each["digest"] for each in found_in(events, {"digest", "plan_id", "plan_version"})}
        digest = plan_digest(pack.plans[run_id])
        report.count("plans")
        if digest != run["plan_digest"] or named - {digest}:
            report.find(f"run {run_id}: the plan is not the one that the run was started with")
        check_descriptions(run_id, run["parts"], events, pack, report)


def check_events(run_id: str, events: List[Dict[str, Any]], unsealed: int, report: Report) -> None:
    """Events without a gap, each with the hash of the one before it."""
    previous = NOT_YET
    for number, event in enumerate(events, 1):
        report.count("events")
        if event["run_seq"] != number or event["run_id"] != run_id:
            report.find(f"run {run_id}: event {number} is missing")
            return
        if number > unsealed:
            if not event["hash"]:
                report.find(f"run {run_id}: event {number} has no hash")
            if event["previous_hash"] != previous:
                report.find(f"run {run_id}: event {number} does not follow the one before it")
        previous = event["hash"] or NOT_YET


def check_ledger(run_id: str, events: List[Dict[str, Any]], entries: List[Dict[str, Any]], report: Report) -> None:
    """The ledger knows the event with which the run ended."""
    report.count("ledger entries", len(entries))
    if any(entry["subject_id"] != run_id for entry in entries):
        report.find(f"run {run_id}: an entry of the ledger is about something else")
    ended = [entry["content"] for entry in entries if entry["kind"] == "run.ended"]
    for content in ended[-1:]:
        last = [event for event in events if event["run_seq"] == content["last_seq"]]
        if not last or last[0]["hash"] != content["last_hash"]:
            report.find(f"run {run_id}: the event with which it ended is not the one that the ledger knows")


def check_descriptions(
    run_id: str, parts: Dict[str, str], events: List[Dict[str, Any]], pack: Pack, report: Report
) -> None:
    """The descriptions of files have the digests that events name."""
    named = {each["uri"]: each["sha256"] for each in found_in(events, {"uri", "kind", "sha256"})}
    for uri, member in parts.items():
        if uri in named and named[uri] is None:
            report.count("descriptions for which events have no digest")
            continue
        report.count("descriptions")
        if hashlib.sha256(pack.members[member]).hexdigest() != named.get(uri):
            report.find(f"run {run_id}: {member} is not the description that an event names")


def found_in(value: Any, keys: "set[str]") -> Iterator[Dict[str, Any]]:
    """The objects anywhere in a JSON value that have some keys."""
    if isinstance(value, dict):
        if keys <= value.keys():
            yield value
        for each in value.values():
            yield from found_in(each, keys)
    elif isinstance(value, list):
        for each in value:
            yield from found_in(each, keys)


_NOT_IN_DIGEST = {"place", "description", "title", "project_version", "digest", "lineage", "reads", "row_names"}
"""Fields of a plan that decide no result."""


def plan_digest(plan: Dict[str, Any]) -> str:
    """The digest of what decides the results of a plan."""
    return hashlib.sha256(canonical(counted_fields(plan)).encode("utf-8", "surrogatepass")).hexdigest()


def counted_fields(value: Any) -> Any:
    """A plan without the fields that its digest leaves out."""
    if isinstance(value, dict):
        counted = {name: counted_fields(each) for name, each in value.items() if name not in _NOT_IN_DIGEST}
        if counted.get("labels_privacy") is None:
            counted.pop("labels_privacy", None)
        return counted
    return [counted_fields(each) for each in value] if isinstance(value, list) else value


# 3. The trees


def check_rows(pack: Pack, report: Report) -> None:
    """Where input rows stood is what the descriptions say that were written when they were read."""
    known: Dict[str, "set[Tuple[str, Optional[str]]]"] = {}
    for run_id, run in pack.evidence["runs"].items():
        parts = [pack.document(member) for member in run["parts"].values()]
        known[run_id] = {(each["name"], each["digest"]) for part in parts for each in part.get("sources", ())}
        known[run_id] |= {(each["path"], each["sha256"]) for part in parts for each in part["files"]}
    for row in pack.document("rows.json")["rows"]:
        report.count("input rows")
        kept = row.get("kept_in")
        if kept and (kept["path"], kept["sha256"]) not in known[row["run_id"]]:
            report.find(f"rows.json: {kept['path']} is not a file that run {row['run_id']} kept rows in")
        if row["digest"] and (row["source"]["file"], row["digest"]) not in known[row["run_id"]]:
            report.find(f"rows.json: {row['source']['file']} had another digest when run {row['run_id']} read it")


def check_trees(pack: Pack, report: Report) -> None:
    """Every explanation of the pack."""
    for told in pack.evidence["explanations"]:
        document = pack.document(told["member"])
        if (document["run_id"], document["row_id"], document["column"]) != (
            told["run_id"],
            told["row_id"],
            told["column"],
        ):
            report.find(f"{told['member']} explains another value than evidence.json says")
        report.count("explanations")
        Tree(pack, report, told["member"]).check(document)


class Tree:
    """Checks the values of one explanation, from the answer down to the rows of the inputs."""

    def __init__(self, pack: Pack, report: Report, member: str) -> None:
        self.pack, self.report, self.member = pack, report, member

    def find(self, node: Dict[str, Any], problem: str) -> None:
        """Something is wrong with a value."""
        self.report.find(f"{self.member}: {node['column']} of {node['label'] or node['row_id']}: {problem}")

    def check(self, node: Dict[str, Any]) -> None:
        """A value, and everything below it."""
        self.report.count("values")
        cause = node["cause"]
        kind = cause["kind"]
        if kind == "loaded":
            self.check_loaded(node)
        elif kind in {"updated", "appended", "summarised"}:
            if node.get("withheld"):
                self.report.count("expressions not calculated again: values are not shown to the maker of the pack")
            elif kind == "summarised":
                self.check_summary(node)
            else:
                self.check_expression(node)
        for each in cause.get("inputs", ()):
            self.check_input(node, each)
        for parent in (cause.get("parents") or {}).get("contributors", ()):
            for each in parent["inputs"]:
                self.check_input(node, each)
        if cause.get("upstream"):
            self.check_upstream(node, node["value"], cause["upstream"])

    def check_input(self, node: Dict[str, Any], each: Dict[str, Any]) -> None:
        """A value that went in is the one that is explained below."""
        told = each["explanation"]
        if told is None:
            pass
        elif told.get("kind") == "joined_row":
            name = each["name"].partition(".")[2]
            found = None if told["row"] is None else told["row"].get(name, each["value"])
            if not node.get("withheld") and found != each["value"]:
                self.find(node, f"{each['name']} is not the value of the joined row")
        else:
            if told["value"] != each["value"]:
                self.find(node, f"{each['name']} is not the value that is explained below it")
            self.check(told)
        if each["upstream"]:
            self.check_upstream(node, each["value"], each["upstream"])

    def check_upstream(self, node: Dict[str, Any], value: Any, upstream: Dict[str, Any]) -> None:
        """A value that another run wrote; a column that was summed up or converted on the way differs."""
        if upstream["column"] == node["column"] and node["cause"]["kind"] == "loaded" and upstream["value"] != value:
            self.find(node, "it is not the value that the other run wrote")
        self.check(upstream)

    def check_loaded(self, node: Dict[str, Any]) -> None:
        """A value that was read is that of the row, and where the row stands is known."""
        row = self.pack.rows.get((node["run_id"], node["row_id"]))
        self.report.count("values of input rows")
        if row is None:
            self.find(node, "its input row is not in the pack")
        elif node["column"] in row["values"] and row["values"][node["column"]] != node["value"]:
            self.find(node, "it is not the value of the input row")
        elif row["source"] != node["cause"]["source"]:
            self.find(node, "the input row comes from another place")

    def expression_of(self, node: Dict[str, Any]) -> Optional[List[Any]]:
        """What the plan says about a column; None where it is a key of groups."""
        plan, seq = self.pack.plans[node["run_id"]], node["cause"]["step"]["seq"]
        [step] = [each for each in plan["steps"] if each["seq"] == seq]
        lists = [step[name] for name in ("assignments", "aggregations") if name in step]
        lists += [step["columns"]] if step["type"] == "append" else []
        for each in (each for several in lists for each in several):
            if each["column"] == node["column"]:
                if each["value"]["text"] != node["cause"]["expression"]:
                    self.find(node, "the expression is not the one of the plan")
                tree: List[Any] = each["value"]["tree"]
                return tree
        return None

    def scope(self, node: Dict[str, Any], inputs: List[Dict[str, Any]]) -> "SeenValues":
        """What an expression sees."""
        run = self.pack.evidence["runs"][node["run_id"]]
        values = {each["name"]: each["value"] for each in inputs}
        return SeenValues(values, run["table"], datetime.date.fromisoformat(run["today"]))

    def check_expression(self, node: Dict[str, Any]) -> None:
        """A value that an expression gave for one row."""
        tree = self.expression_of(node)
        if tree is None:
            self.find(node, "the plan has no expression for it")
        else:
            self.compare(node, tree, lambda: calculate(tree, self.scope(node, node["cause"]["inputs"])))

    def check_summary(self, node: Dict[str, Any]) -> None:
        """A value that was made from all rows of a group."""
        parents = node["cause"]["parents"]
        rows = parents["contributors"]
        if len(rows) != parents["count"] or not rows:
            self.find(node, f"it was made from {parents['count']} rows, and {len(rows)} are in the pack")
            return
        tree = self.expression_of(node)
        scopes = [self.scope(node, row["inputs"]) for row in rows]
        if tree is None:
            name = node["column"]
            self.report.count("expressions")
            if any(not is_same(scope.values.get(name), node["value"]) for scope in scopes):
                self.find(node, "a row of the group has another key")
            return
        self.compare(node, tree, lambda: calculate_group(tree, scopes))
        calls = [each for each in aggregate_calls(tree) if each[3:]]
        if len(calls) == 1:
            for row, scope in zip(rows, scopes):
                stored = read_value(row["value"], calls[0][3][1])
                if not is_same(calculate(calls[0][3], scope), stored):
                    self.find(node, f"what {row['label']} brought in is not what its values give")

    def compare(self, node: Dict[str, Any], tree: List[Any], compute: Callable[[], Any]) -> None:
        """A value that was stored with the one that the expression gives here."""
        self.report.count("expressions")
        try:
            again = compute()
        except (ArithmeticError, KeyError, ValueError) as error:
            self.find(node, f"{node['cause']['expression']} cannot be calculated: {type(error).__name__}: {error}")
            return
        stored = read_value(node["value"], tree[1])
        if not is_same(stored, again):
            self.find(node, f"stored as {node['value']}, but {node['cause']['expression']} gives {shown(again)}")


def is_same(stored: Any, again: Any) -> bool:
    """Sums of doubles depend on the order of adding; everything else is exact."""
    if isinstance(stored, float) and isinstance(again, float):
        return (math.isnan(stored) and math.isnan(again)) or math.isclose(stored, again, rel_tol=1e-9)
    return type(stored) is type(again) and bool(stored == again)


def shown(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, Fraction):
        digits = next((digits for digits in range(39) if (value * 10**digits).denominator == 1), 38)
        return text_of_decimal(value, digits)
    return "NULL" if value is None else str(value)


# Expressions. A type is its name, such as decimal(18,2). Decimals are exact fractions here, so that nothing is rounded
# but where the language says so. A tree is a list: its kind, its type, and what it consists of.


class SeenValues:
    """The values that an expression sees, and the day on which the run started."""

    def __init__(self, values: Dict[str, Any], table: str, today: datetime.date) -> None:
        self.values, self.table, self.today = values, table, today
        self.aggregates: Dict[int, Any] = {}

    def value(self, table: str, column: str, type_: str) -> Any:
        """The value of a column."""
        return read_value(self.values[column if table == self.table else f"{table}.{column}"], type_)


def read_value(value: Any, type_: str) -> Any:
    """A value as JSON has it, in its type."""
    if value is None:
        return None
    kind = type_.partition("(")[0]
    if kind == "decimal":
        return Fraction(str(value))
    if kind == "double":
        return float(value)
    if kind == "date":
        return datetime.date.fromisoformat(value)
    if kind == "timestamp":
        return datetime.datetime.fromisoformat(value)
    expected = {"string": str, "integer": int, "boolean": bool}.get(kind)
    if expected is not None and type(value) is not expected:
        raise ValueError(f"{value!r} is not a value of the type {type_}")
    return value


def digits_of(type_: str) -> Tuple[int, int]:
    """Precision and scale of a decimal type."""
    precision, scale = re.findall(r"\d+", type_)
    return int(precision), int(scale)


def half_up(value: Fraction, digits: int) -> Fraction:
    """Rounded to digits after the decimal point, or before it; halves away from zero."""
    shift = Fraction(10) ** digits
    scaled = abs(value) * shift
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return (whole if value >= 0 else -whole) / shift


def fitted(value: Fraction, type_: str) -> Fraction:
    """A number in a decimal type."""
    precision, scale = digits_of(type_)
    rounded = half_up(value, scale)
    if abs(rounded) >= 10 ** (precision - scale):
        raise ArithmeticError(f"{shown(value)} does not fit {type_}")
    return rounded


def integer(value: int) -> int:
    """A whole number of 64 bits."""
    if not -(2**63) <= value < 2**63:
        raise ArithmeticError(f"{value} does not fit 64 bits")
    return value


def result(value: Any, type_: str) -> Any:
    """The exact result of a calculation, in the type that it has."""
    if type_.startswith("decimal"):
        return fitted(Fraction(value), type_)
    return integer(value) if type_ == "integer" else value


def product(a: Any, b: Any) -> Any:
    """Spark rounds products to 39 digits before it rounds them to the type of the result."""
    exact = a * b
    if not isinstance(exact, Fraction):
        return exact
    whole_digits = len(str(int(abs(exact)))) if abs(exact) >= 1 else 0
    return half_up(exact, 39 - whole_digits) if whole_digits else exact


def quotient(a: Any, b: Any, type_: str) -> Any:
    """Spark divides to 39 digits after the decimal point. Nothing comes of a division by zero."""
    if b == 0:
        return None
    if isinstance(a, float):
        return a / b
    return fitted(half_up(Fraction(a) / Fraction(b), 39), type_)


def remainder(a: Any, b: Any) -> Any:
    """What is left after whole b's, with the sign of b."""
    if b == 0:
        return None
    if not isinstance(a, float):
        return a - b * (a // b)
    if math.isnan(a) or math.isnan(b) or math.isinf(a):
        return math.nan
    left = math.fmod(a, b)
    return left + b if left and (left < 0) != (b < 0) else left


def exact_double(value: float) -> Fraction:
    """The shortest decimal number that reads back as a double."""
    return Fraction(repr(value))


def rounded(value: Any, digits: int, type_: str) -> Any:
    """ROUND."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        return float(half_up(exact_double(value), digits)) + 0.0
    if isinstance(value, int):
        return value if digits >= 0 else integer(int(half_up(Fraction(value), digits)))
    return fitted(half_up(value, digits), type_)


def whole(value: Any, pick: Callable[[Any], int]) -> Any:
    """FLOOR and CEIL."""
    if isinstance(value, float):
        return float(pick(value)) + 0.0 if math.isfinite(value) else value
    return value if isinstance(value, int) else Fraction(pick(value))


def as_integer(value: Any) -> int:
    """TO_INTEGER."""
    if isinstance(value, str):
        text = value.strip(" ")
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ArithmeticError(f"{value!r} is not a whole number")
        return integer(int(text))
    if isinstance(value, float):
        value = exact_double(value)
    return integer(int(half_up(value, 0)) if isinstance(value, Fraction) else int(value))


def as_decimal(value: Any) -> Fraction:
    """A number of any number of digits."""
    if isinstance(value, float):
        return exact_double(value)
    if isinstance(value, str):
        text = value.strip(" ")
        if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text):
            raise ArithmeticError(f"{value!r} is not a number")
        return Fraction(text if not text.endswith(".") else text[:-1])
    return Fraction(value)


def as_date(value: Any) -> datetime.date:
    """A day."""
    if isinstance(value, datetime.datetime):
        return value.date()
    return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)


def as_timestamp(value: Any) -> datetime.datetime:
    """A moment."""
    if isinstance(value, datetime.datetime):
        return value
    return datetime.datetime(value.year, value.month, value.day)


def converted(value: Any, source: str, target: str) -> Any:
    """A value in another type."""
    if source in {target, "null"}:
        return value
    if target.startswith("decimal"):
        return fitted(as_decimal(value), target)
    conversions: Dict[str, Callable[[Any], Any]] = {
        "integer": as_integer,
        "double": float,
        "date": as_date,
        "timestamp": as_timestamp,
        "string": lambda value: text_of(value, source),
    }
    return conversions[target](value)


def text_of_decimal(value: Fraction, scale: int) -> str:
    """A number with all digits of its scale."""
    digits = str(abs(int(value * 10**scale))).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if value < 0 else text


def text_of(value: Any, type_: str) -> str:
    """TO_STRING."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, Fraction):
        return text_of_decimal(value, digits_of(type_)[1])
    if isinstance(value, float):
        return text_of_double(value)
    if isinstance(value, datetime.datetime):
        text = value.isoformat(sep=" ")
        return text.rstrip("0") if "." in text else text
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def text_of_double(value: float) -> str:
    """A double as Java writes it: 1.0E10."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        exact = exact_double(value)
        digits = next(digits for digits in range(1, 400) if (exact * 10**digits).denominator == 1)
        text = text_of_decimal(exact, digits)
        return f"-{text}" if value == 0 and math.copysign(1, value) < 0 else text
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    for digits in range(1, 18):
        mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
        if float(f"{mantissa}e{exponent}") == value:
            break
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}{'0' if mantissa.endswith('.') else ''}E{int(exponent)}"


def order(value: Any) -> Any:
    """What to compare: not a number comes after every number, and equals itself."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


_NEW_LETTERS = {
    "\u1c89": "\u1c8a",
    "\ua7cb": "\u0264",
    "\ua7cc": "\ua7cd",
    "\ua7ce": "\ua7cf",
    "\ua7d2": "\ua7d3",
    "\ua7d4": "\ua7d5",
    "\ua7da": "\ua7db",
    "\ua7dc": "\u019b",
    **{chr(0x10D50 + index): chr(0x10D70 + index) for index in range(22)},
    **{chr(0x16EA0 + index): chr(0x16EBB + index) for index in range(25)},
}
"""Letters that older Pythons do not know, upper case and lower case: Unicode 15 to 17."""
_LOWER = str.maketrans(_NEW_LETTERS)
_UPPER = str.maketrans({lower: upper for upper, lower in _NEW_LETTERS.items()})


def calculate(tree: List[Any], scope: SeenValues) -> Any:
    """The value of an expression."""
    kind, type_ = tree[0], tree[1]
    if kind == "constant":
        return constant(tree[2], type_)
    if kind == "column":
        return scope.value(tree[2], tree[3], type_)
    if kind == "convert":
        value = calculate(tree[2], scope)
        return None if value is None else converted(value, tree[2][1], type_)
    name, arguments = tree[2], tree[3:]
    if name in _AGGREGATES:
        return scope.aggregates[id(tree)]
    if name in _LAZY:
        return _LAZY[name](arguments, scope)
    if name == "TODAY":
        return scope.today
    values = [calculate(argument, scope) for argument in arguments]
    if name == "ISNULL":
        return values[0] is None
    if None in values:
        return None
    return _FUNCTIONS[name](values, type_, [argument[1] for argument in arguments])


def constant(text: Optional[str], type_: str) -> Any:
    """A value that the expression names."""
    if text is None:
        return None
    if type_ == "integer":
        return int(text)
    return text == "true" if type_ == "boolean" else read_value(text, type_)


def first_true(arguments: List[Any], scope: SeenValues, decisive: bool) -> Optional[bool]:
    """AND and OR, which NULL leaves open."""
    is_open = False
    for argument in arguments:
        value: Optional[bool] = calculate(argument, scope)
        if value is decisive:
            return decisive
        is_open = is_open or value is None
    return None if is_open else not decisive


def is_in(arguments: List[Any], scope: SeenValues) -> Optional[bool]:
    """IN."""
    value, is_open = calculate(arguments[0], scope), False
    if value is None:
        return None
    for argument in arguments[1:]:
        candidate = calculate(argument, scope)
        if candidate is not None and order(candidate) == order(value):
            return True
        is_open = is_open or candidate is None
    return None if is_open else False


def coalesce(arguments: List[Any], scope: SeenValues) -> Any:
    """COALESCE."""
    for argument in arguments:
        value = calculate(argument, scope)
        if value is not None:
            return value
    return None


_LAZY: Dict[str, Callable[[List[Any], SeenValues], Any]] = {
    "IF": lambda arguments, scope: calculate(arguments[1 if calculate(arguments[0], scope) else 2], scope),
    "AND": lambda arguments, scope: first_true(arguments, scope, decisive=False),
    "OR": lambda arguments, scope: first_true(arguments, scope, decisive=True),
    "IN": is_in,
    "COALESCE": coalesce,
}
"""Functions that look at an argument only when they need it."""


def to_decimal(values: List[Any], type_: str, _types: List[str]) -> Fraction:
    """TO_DECIMAL."""
    return fitted(as_decimal(values[0]), type_)


def a_date(values: List[Any], _type: str, _types: List[str]) -> datetime.date:
    """DATE."""
    return as_date(values[0]) if len(values) == 1 else datetime.date(*values)


_FUNCTIONS: Dict[str, Callable[[List[Any], str, List[str]], Any]] = {
    "+": lambda v, type_, _: result(v[0] + v[1], type_),
    "-": lambda v, type_, _: result(v[0] - v[1], type_),
    "*": lambda v, type_, _: result(product(v[0], v[1]), type_),
    "/": lambda v, type_, _: quotient(v[0], v[1], type_),
    "NEGATE": lambda v, type_, _: result(-v[0], type_),
    "=": lambda v, *_: order(v[0]) == order(v[1]),
    "<>": lambda v, *_: order(v[0]) != order(v[1]),
    "<": lambda v, *_: order(v[0]) < order(v[1]),
    "<=": lambda v, *_: order(v[0]) <= order(v[1]),
    ">": lambda v, *_: order(v[0]) > order(v[1]),
    ">=": lambda v, *_: order(v[0]) >= order(v[1]),
    "NOT": lambda v, *_: not v[0],
    "ABS": lambda v, type_, _: result(abs(v[0]), type_),
    "ROUND": lambda v, type_, _: rounded(v[0], v[1] if v[1:] else 0, type_),
    "FLOOR": lambda v, *_: whole(v[0], math.floor),
    "CEIL": lambda v, *_: whole(v[0], math.ceil),
    "MOD": lambda v, type_, _: None if v[1] == 0 else result(remainder(v[0], v[1]), type_),
    "MIN": lambda v, *_: min(v, key=order),
    "MAX": lambda v, *_: max(v, key=order),
    "CONCAT": lambda v, *_: "".join(v),
    "UPPER": lambda v, *_: v[0].upper().translate(_UPPER),
    "LOWER": lambda v, *_: v[0].lower().translate(_LOWER),
    "TRIM": lambda v, *_: v[0].strip(" "),
    "LEFT": lambda v, *_: v[0][: max(v[1], 0)],
    "RIGHT": lambda v, *_: v[0][max(len(v[0]) - v[1], 0) :] if v[1] > 0 else "",
    "LEN": lambda v, *_: len(v[0]),
    "CONTAINS": lambda v, *_: v[1] in v[0],
    "STARTSWITH": lambda v, *_: v[0].startswith(v[1]),
    "ENDSWITH": lambda v, *_: v[0].endswith(v[1]),
    "REPLACE": lambda v, *_: v[0].replace(v[1], v[2]) if v[1] else v[0],
    "SUBSTRING": lambda v, *_: v[0][max(v[1] - 1, 0) : max(v[1] - 1 + v[2], 0)],
    "DATE": a_date,
    "YEAR": lambda v, *_: v[0].year,
    "MONTH": lambda v, *_: v[0].month,
    "DAY": lambda v, *_: v[0].day,
    "DATEDIFF": lambda v, *_: (as_date(v[0]) - as_date(v[1])).days,
    "DATEADD": lambda v, *_: as_date(v[0]) + datetime.timedelta(days=v[1]),
    "TO_STRING": lambda v, _, types: text_of(v[0], types[0]),
    "TO_INTEGER": lambda v, *_: as_integer(v[0]),
    "TO_DECIMAL": to_decimal,
    "TO_DATE": lambda v, *_: as_date(v[0]),
}
"""Functions of values, none of which is NULL; the type of the result; the types of the arguments."""


def total(values: List[Any], type_: str) -> Any:
    """SUM."""
    if not values:
        return None
    if type_ != "double":
        return result(sum(values), type_)
    return math.fsum(values) if all(math.isfinite(value) for value in values) else sum(values)


def mean(values: List[Any], type_: str) -> Any:
    """AVG."""
    if not values:
        return None
    if type_ == "double":
        return total(values, type_) / len(values)
    return fitted(half_up(Fraction(sum(values)) / len(values), 39), type_)


_AGGREGATES: Dict[str, Callable[[List[Any], str], Any]] = {
    "SUM": total,
    "AVG": mean,
    "COUNT": lambda values, _: len(values),
    "COUNT_ALL": lambda values, _: len(values),
    "COUNT_DISTINCT": lambda values, _: len({order(value) for value in values}),
    "MIN_AGG": lambda values, _: min(values, key=order, default=None),
    "MAX_AGG": lambda values, _: max(values, key=order, default=None),
}


def aggregate_calls(tree: Any) -> List[List[Any]]:
    """The calls of an expression that take all rows of a group."""
    if not isinstance(tree, list):
        return []
    if tree[0] == "apply" and tree[2] in _AGGREGATES:
        return [tree]
    return [call for each in tree[2:] for call in aggregate_calls(each)]


def calculate_group(tree: List[Any], rows: List[SeenValues]) -> Any:
    """The value of an aggregation over the rows of a group."""
    outer = SeenValues(rows[0].values, rows[0].table, rows[0].today)
    for call in aggregate_calls(tree):
        values: List[Any] = [calculate(call[3], row) for row in rows] if call[3:] else [0 for _ in rows]
        outer.aggregates[id(call)] = _AGGREGATES[call[2]]([value for value in values if value is not None], call[1])
    return calculate(tree, outer)


def main(arguments: List[str]) -> int:
    """The exit code: 0 if everything is right, 1 if anything is not, 2 if the call is wrong."""
    key: Optional[str] = None
    if "--key" in arguments[:-1]:
        position = arguments.index("--key")
        key = arguments[position + 1]
        del arguments[position : position + 2]
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        sys.stderr.write("usage: python3 -I verify.py [PACK] [--key FINGERPRINT]\n")
        return 2
    sys.setrecursionlimit(20_000)
    report = verify(Path(arguments[0]) if arguments else Path(__file__).resolve().parent, key)
    for problem in report.findings[:MOST_FINDINGS]:
        sys.stdout.write(f"{problem}\n")
    for kind, number in report.checked.items():
        sys.stdout.write(f"{kind + ':':<24}{number:>12,}\n")
    sys.stdout.write(f"signed with the key {report.fingerprint or 'unknown'}\n")
    if key is None:
        sys.stdout.write(
            "compare this fingerprint with one that you did not get with the pack, or give it with --key\n"
        )
    sys.stdout.write("intact\n" if not report.findings else f"NOT INTACT: {len(report.findings)} findings\n")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
