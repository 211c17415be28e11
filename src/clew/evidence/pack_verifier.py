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
    """The ledger knows the event with which the run ended, and those by which someone told it something."""
    report.count("ledger entries", len(entries))
    if any(entry["subject_id"] != run_id for entry in entries):
        report.find(f"run {run_id}: an entry of the ledger is about something else")
    occasions = {"run.ended": "with which it ended", "run.signalled": "by which it was told something"}
    for entry in entries:
        if entry["kind"] not in occasions:
            continue
        content = entry["content"]
        last = [event for event in events if event["run_seq"] == content["last_seq"]]
        if not last or last[0]["hash"] != content["last_hash"]:
            occasion = occasions[entry["kind"]]
            report.find(f"run {run_id}: the event {occasion} is not the one that the ledger knows")


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
        for window in cause.get("windows", ()):
            if not node.get("withheld"):
                self.check_window(node, window)
        rows = [*(cause.get("parents") or {}).get("contributors", ())]
        rows += [row for window in cause.get("windows", ()) for row in window["parents"]["contributors"]]
        for parent in rows:
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

    def check_window(self, node: Dict[str, Any], told: Dict[str, Any]) -> None:
        """A value that was made from other rows of the same step."""
        plan, seq = self.pack.plans[node["run_id"]], node["cause"]["step"]["seq"]
        [step] = [each for each in plan["steps"] if each["seq"] == seq]
        calls = [each for each in step.get("windows", ()) if each["column"] == told["call"]]
        rows = told["parents"]["contributors"]
        self.report.count("windows")
        if len(calls) != 1 or [each["name"] for each in node["cause"]["inputs"]].count(told["call"]) != 1:
            self.find(node, f"the plan does not call {told['call']} for it")
            return
        if len(rows) != told["parents"]["count"]:
            self.find(
                node, f"{told['call']} looked at {told['parents']['count']} rows, and {len(rows)} are in the pack"
            )
            return
        if any(each["value"] != told["value"] for each in node["cause"]["inputs"] if each["name"] == told["call"]):
            self.find(node, f"{told['call']} is not the value that went in")
        values = [{each["name"]: each["value"] for each in row["inputs"]} for row in rows]
        if any(row[key] != told["group"][key] for row in values for key in calls[0]["keys"]):
            self.find(node, f"{told['call']} looked at a row with another key")
        columns = [*plan["input"]["columns"], *(each for other in plan["steps"] for each in other["adds"])]
        types = {each["name"]: each["type"] for each in columns}
        again = value_of_window(calls[0], [self.scope(node, row["inputs"]) for row in rows], types)
        if again is _OUT_OF_ORDER:
            self.find(node, f"the rows that {told['call']} looked at are not in order")
        elif not is_same(read_value(told["value"], calls[0]["type"]), again):
            self.find(node, f"{told['call']} is stored as {told['value']}, but gives {shown(again)}")

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


_OVER = " over"
"""The table of the columns that stand for calls with OVER."""
_OUT_OF_ORDER = object()


class SeenValues:
    """The values that an expression sees, and the day on which the run started."""

    def __init__(self, values: Dict[str, Any], table: str, today: datetime.date) -> None:
        self.values, self.table, self.today = values, table, today
        self.aggregates: Dict[int, Any] = {}

    def value(self, table: str, column: str, type_: str) -> Any:
        """The value of a column."""
        return read_value(self.values[column if table in {self.table, _OVER} else f"{table}.{column}"], type_)


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


def case(arguments: List[Any], scope: SeenValues) -> Any:
    """CASE."""
    for condition, value in zip(arguments[:-1:2], arguments[1::2]):
        if calculate(condition, scope):
            return calculate(value, scope)
    return calculate(arguments[-1], scope)


def switch(arguments: List[Any], scope: SeenValues) -> Any:
    """SWITCH."""
    value = order(calculate(arguments[0], scope))
    for candidate, found in zip(arguments[1::2], arguments[2::2]):
        if value is not None and order(calculate(candidate, scope)) == value:
            return calculate(found, scope)
    return calculate(arguments[-1], scope) if len(arguments) % 2 == 0 else None


def is_between(arguments: List[Any], scope: SeenValues) -> Optional[bool]:
    """BETWEEN: one of two comparisons may be open."""
    value, low, high = (order(calculate(argument, scope)) for argument in arguments)
    bounds = [None if None in (value, low) else low <= value, None if None in (value, high) else value <= high]
    return False if False in bounds else None if None in bounds else True


def null_if(arguments: List[Any], scope: SeenValues) -> Any:
    """NULLIF."""
    value, other = (calculate(argument, scope) for argument in arguments)
    return None if value is None or order(value) == order(other) else value


def extreme(pick: Callable[..., Any]) -> Callable[[List[Any], SeenValues], Any]:
    """GREATEST and LEAST, which leave out what is NULL."""

    def found(arguments: List[Any], scope: SeenValues) -> Any:
        values = [calculate(argument, scope) for argument in arguments]
        return pick((value for value in values if value is not None), key=order, default=None)

    return found


_LAZY: Dict[str, Callable[[List[Any], SeenValues], Any]] = {
    "CASE": case,
    "SWITCH": switch,
    "BETWEEN": is_between,
    "NULLIF": null_if,
    "GREATEST": extreme(max),
    "LEAST": extreme(min),
    "IF": lambda arguments, scope: calculate(arguments[1 if calculate(arguments[0], scope) else 2], scope),
    "AND": lambda arguments, scope: first_true(arguments, scope, decisive=False),
    "OR": lambda arguments, scope: first_true(arguments, scope, decisive=True),
    "IN": is_in,
    "COALESCE": coalesce,
}
"""Functions that look at an argument only when they need it."""


def to_integer(values: List[Any], _type: str, _types: List[str]) -> int:
    """TO_INTEGER."""
    return as_integer(values[0])


def to_decimal(values: List[Any], type_: str, _types: List[str]) -> Fraction:
    """TO_DECIMAL."""
    return fitted(as_decimal(values[0]), type_)


# Text: positions, padding, patterns


def find(text: str, part: str, start: int = 1) -> int:
    """FIND."""
    first = max(start, 1)
    return 0 if first > len(text) + 1 else text.find(part, first - 1) + 1


def split(text: str, separator: str, number: int) -> Optional[str]:
    """SPLIT."""
    parts = text.split(separator) if separator else [text]
    if number == 0 or abs(number) > len(parts):
        return None
    return parts[number - 1 if number > 0 else number]


def padded(text: str, length: int, fill: str = " ", *, left: bool = False) -> str:
    """LPAD and RPAD."""
    length = max(length, 0)
    if len(text) >= length or not fill:
        return text[:length]
    filling = (fill * length)[: length - len(text)]
    return filling + text if left else text + filling


def proper(text: str) -> str:
    """PROPER: a capital at the start, and after each ASCII character (or no-break space) that is not a letter."""
    lowered = text.lower().translate(_LOWER)
    pieces = re.split("([\x01-@\\[-`{-\x7f\u00a0])", lowered)
    return "".join(piece[:1].upper().translate(_UPPER) + piece[1:] for piece in pieces)


def uuid5(namespace: str, name: str) -> str:
    """UUID5 (RFC 9562)."""
    digest = bytearray(hashlib.sha1(bytes.fromhex(namespace.replace("-", "")) + name.encode("utf-8")).digest()[:16])  # noqa: S324
    digest[6], digest[8] = digest[6] & 0x0F | 0x50, digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def like(text: str, pattern: str, escape: str = "\\") -> bool:
    """LIKE: at each % the fewest characters that do, and one more whenever the rest does not fit."""
    wanted, characters = [], iter(pattern)
    for character in characters:
        wanted.append((next(characters), True) if character == escape else (character, False))
    here, place, back, again = 0, 0, -1, 0
    while here < len(text):
        character, is_literal = wanted[place] if place < len(wanted) else ("", True)
        if not is_literal and character == "%":
            back, again, place = place, here, place + 1
        elif character == text[here] or (character == "_" and not is_literal):
            here, place = here + 1, place + 1
        elif back < 0:
            return False
        else:
            again += 1
            here, place = again, back + 1
    return all(each == ("%", False) for each in wanted[place:])


def regex_of(pattern: str) -> "re.Pattern[str]":
    """A regular expression of the language, for Python: ASCII classes, no lines, $ is the end."""
    found, is_class, position = "", False, 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            escaped = pattern[position]
            inner = {"d": "0-9", "w": "A-Za-z0-9_", "s": " \\t-\\r"}.get(escaped.lower())
            if inner is None:
                found += "\\" + escaped
            else:
                found += inner if is_class else f"[{'^' if escaped.isupper() else ''}{inner}]"
        elif is_class:
            is_class = character != "]"
            found += character
        else:
            is_class = character == "["
            found += {".": "[^\n]", "^": "\\A", "$": "\\Z"}.get(character, character)
            if is_class and pattern[position + 1 : position + 2] == "^":
                position += 1
                found += "^"
        position += 1
    return re.compile(found)


def regex_extract(text: str, pattern: str, group: Optional[int] = None) -> Optional[str]:
    """REGEX_EXTRACT."""
    regex = regex_of(pattern)
    found = regex.search(text)
    if found is None:
        return None
    return found[min(1, regex.groups) if group is None else group] or ""


def regex_replace(text: str, pattern: str, replacement: str) -> str:
    """REGEX_REPLACE."""

    def replaced(found: "re.Match[str]") -> str:
        return re.sub(r"\$(.)", lambda each: "$" if each[1] == "$" else found[int(each[1])] or "", replacement)

    return regex_of(pattern).sub(replaced, text)


# Dates: months, weeks, working days, patterns

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY_PARTS = r"yyyy|yy|MMM|MM|M|dd|d|HH|mm|ss"


def last_of_month(day: datetime.date) -> datetime.date:
    """The last day of a month."""
    for count in (31, 30, 29, 28):
        try:
            return day.replace(day=count)
        except ValueError:
            continue
    raise ArithmeticError("a month has days")


def months_later(day: datetime.date, months: int) -> datetime.date:
    """EDATE."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return datetime.date(year, month + 1, min(day.day, last_of_month(datetime.date(year, month + 1, 1)).day))


def difference(end: datetime.date, start: datetime.date, unit: str = "day") -> int:
    """DATEDIFF."""
    if end < start:
        return -difference(start, end, unit)
    if unit in ("day", "week"):
        return (end - start).days // {"day": 1, "week": 7}[unit]
    months = (end.year * 12 + end.month) - (start.year * 12 + start.month) - (1 if end.day < start.day else 0)
    return months // {"month": 1, "quarter": 3, "year": 12}[unit]


def truncated(unit: str, day: datetime.date) -> datetime.date:
    """DATE_TRUNC."""
    if unit == "week":
        return day - datetime.timedelta(days=day.weekday())
    first_month = {"year": 1, "quarter": day.month - (day.month - 1) % 3}.get(unit, day.month)
    return day if unit == "day" else datetime.date(day.year, first_month, 1)


def workday(day: datetime.date, days: int, *holidays: datetime.date) -> datetime.date:
    """WORKDAY."""
    for _ in range(abs(days)):
        day += datetime.timedelta(days=1 if days > 0 else -1)
        while day.weekday() > 4 or day in holidays:
            day += datetime.timedelta(days=1 if days > 0 else -1)
    return day


def read_day(text: str, pattern: str) -> datetime.date:
    """TO_DATE with a pattern."""
    months = "|".join(_MONTHS)
    read = {"yyyy": "(?P<y>[0-9]{4})", "yy": "(?P<y>[0-9]{2})", "MMM": f"(?P<m>(?ai:{months}))"}
    read.update({"MM": "(?P<m>[0-9]{2})", "M": "(?P<m>[0-9]{1,2})", "dd": "(?P<d>[0-9]{2})", "d": "(?P<d>[0-9]{1,2})"})
    parts = re.split(f"({_DAY_PARTS})", pattern)
    found = re.fullmatch("".join(read.get(part) or re.escape(part) for part in parts), text)
    if found is None:
        raise ArithmeticError(f"{text!r} is not a date of the form {pattern}")
    year = int(found["y"]) + (2000 if len(found["y"]) == 2 else 0)
    month = _MONTHS.index(found["m"].title()) + 1 if found["m"].isalpha() else int(found["m"])
    return datetime.date(year, month, int(found["d"]))


def written_day(value: Any, pattern: str) -> str:
    """TO_STRING of a date with a pattern."""
    at = as_timestamp(value)
    parts = {"yyyy": f"{at.year:04}", "yy": f"{at.year % 100:02}", "MMM": _MONTHS[at.month - 1], "MM": f"{at.month:02}"}
    parts.update({"M": f"{at.month}", "dd": f"{at.day:02}", "d": f"{at.day}", "HH": f"{at.hour:02}"})
    parts.update({"mm": f"{at.minute:02}", "ss": f"{at.second:02}"})
    return re.sub(_DAY_PARTS, lambda found: parts[found[0]], pattern)


def written_number(value: Any, pattern: str) -> str:
    """TO_STRING of a number with a pattern."""
    whole, _, behind = pattern.partition(".")
    number = half_up(Fraction(value), len(behind))
    digits, _, rest = text_of_decimal(abs(number), len(behind)).partition(".")
    digits = digits.rjust(whole.count("0"), "0")
    if "," in whole:
        digits = re.sub(r"(?<=[0-9])(?=([0-9]{3})+\Z)", ",", digits)
    return ("-" if number < 0 else "") + digits + ("." + rest if rest else "")


def to_string(values: List[Any], _type: str, types: List[str]) -> str:
    """TO_STRING."""
    if len(values) == 1:
        return text_of(values[0], types[0])
    return written_day(*values) if types[0] in ("date", "timestamp") else written_number(*values)


def to_date(values: List[Any], _type: str, _types: List[str]) -> datetime.date:
    """TO_DATE."""
    if len(values) > 1:
        return read_day(*values)
    if isinstance(values[0], str) and not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", values[0]):
        raise ArithmeticError(f"{values[0]!r} is not a date")
    return as_date(values[0])


def trying(convert: Callable[[List[Any], str, List[str]], Any]) -> Callable[[List[Any], str, List[str]], Any]:
    """The TRY_ form of a conversion."""

    def attempt(values: List[Any], type_: str, types: List[str]) -> Any:
        try:
            return convert(values, type_, types)
        except (ArithmeticError, ValueError):
            return None

    return attempt


# Powers: the steps are those that the language prescribes, since libraries differ in the last digit

_LN2 = (0.6931471803691238, 1.9082149292705877e-10)


def series(terms: List[float], x: float) -> float:
    """A polynomial, its highest term first."""
    value = 0.0
    for term in terms:
        value = value * x + term
    return value


def exponential(x: float) -> float:
    """EXP."""
    if math.isnan(x) or x > 709.782712893384 or x < -745.2:
        return x if math.isnan(x) else math.inf if x > 0 else 0.0
    k = math.floor(x * 1.4426950408889634 + 0.5)
    value = series([1 / math.factorial(n) for n in range(14, -1, -1)], (x - k * _LN2[0]) - k * _LN2[1])
    return value * 2.0 ** (k // 2) * 2.0 ** (k - k // 2)


def logarithm(x: float) -> Optional[float]:
    """LN."""
    if math.isnan(x) or x == math.inf or x <= 0:
        return None if x <= 0 else x
    m, k = math.frexp(x)
    if 2 * m > 1.4142135623730951:
        k += 1
    else:
        m *= 2
    s, k = (m - 1) / (m + 1), k - 1
    return k * _LN2[0] + (2 * s * series([1 / n for n in range(23, 0, -2)], s * s) + k * _LN2[1])


def power(x: float, y: float) -> Optional[float]:
    """POWER."""
    if math.isnan(x) or math.isnan(y):
        return math.nan
    whole = int(y)
    rest = y - whole
    if (x == 0 and y < 0) or (x < 0 and rest):
        return None
    value, square = 1.0, x
    for digit in reversed(bin(abs(whole))[2:]):
        value = value * square if digit == "1" else value
        square = square * square
    if whole < 0:
        value = 1 / value if value else math.inf
    if abs(rest) == 0.5:
        return value * math.sqrt(x) if rest > 0 else value / math.sqrt(x)
    if rest:
        logged = -math.inf if x == 0 else logarithm(x) or 0.0
        return value * exponential(rest * logged)
    return value


def rounded_by(value: Any, digits: int, mode: str, type_: str) -> Any:
    """ROUND with a mode."""
    if mode == "half_up" or isinstance(value, float):
        return rounded(value, digits, type_)
    if isinstance(value, int) and digits >= 0:
        return value
    shifted = Fraction(value) * Fraction(10) ** digits
    below, above = math.floor(shifted), math.ceil(shifted)
    kept: Dict[str, int] = {"floor": below, "ceiling": above, "half_even": round(shifted)}
    kept["down"], kept["up"] = (above, below) if value < 0 else (below, above)
    found = Fraction(kept[mode]) / Fraction(10) ** digits
    return integer(int(found)) if type_ == "integer" else fitted(found, type_)


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
    "ROUND": lambda v, type_, _: rounded_by(v[0], v[1] if v[1:] else 0, v[2] if v[2:] else "half_up", type_),
    "SIGN": lambda v, *_: 0 if v[0] == 0 else -1 if v[0] < 0 else 1,
    "POWER": lambda v, *_: power(*v),
    "SQRT": lambda v, *_: None if v[0] < 0 else math.sqrt(v[0]),
    "EXP": lambda v, *_: exponential(*v),
    "LN": lambda v, *_: logarithm(*v),
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
    "FIND": lambda v, *_: find(*v),
    "SPLIT": lambda v, *_: split(*v),
    "LPAD": lambda v, *_: padded(*v, left=True),
    "RPAD": lambda v, *_: padded(*v),
    "PROPER": lambda v, *_: proper(*v),
    "REPEAT": lambda v, *_: v[0] * max(v[1], 0),
    "HASH": lambda v, *_: hashlib.sha256(v[0].encode("utf-8")).hexdigest(),
    "UUID5": lambda v, *_: uuid5(*v),
    "LIKE": lambda v, *_: like(*v),
    "REGEX_MATCH": lambda v, *_: regex_of(v[1]).search(v[0]) is not None,
    "REGEX_EXTRACT": lambda v, *_: regex_extract(*v),
    "REGEX_REPLACE": lambda v, *_: regex_replace(*v),
    "DATE": a_date,
    "YEAR": lambda v, *_: v[0].year,
    "MONTH": lambda v, *_: v[0].month,
    "DAY": lambda v, *_: v[0].day,
    "DATEDIFF": lambda v, *_: difference(as_date(v[0]), as_date(v[1]), *v[2:]),
    "EOMONTH": lambda v, *_: last_of_month(months_later(as_date(v[0]).replace(day=1), *(v[1:] or [0]))),
    "EDATE": lambda v, *_: months_later(as_date(v[0]), v[1]),
    "DATE_TRUNC": lambda v, *_: truncated(v[0], as_date(v[1])),
    "WEEKDAY": lambda v, *_: v[0].isoweekday(),
    "WORKDAY": lambda v, *_: workday(as_date(v[0]), *v[1:]),
    "DATEADD": lambda v, *_: as_date(v[0]) + datetime.timedelta(days=v[1]),
    "TO_STRING": to_string,
    "TO_INTEGER": to_integer,
    "TO_DECIMAL": to_decimal,
    "TO_DATE": to_date,
    "TRY_TO_INTEGER": trying(to_integer),
    "TRY_TO_DECIMAL": trying(to_decimal),
    "TRY_TO_DATE": trying(to_date),
}
"""Functions of values, none of which is NULL; the type of the result; the types of the arguments."""


def total(values: List[Any], type_: str, _types: Any = None) -> Any:
    """SUM."""
    if not values:
        return None
    if type_ != "double":
        return result(sum(values), type_)
    return math.fsum(values) if all(math.isfinite(value) for value in values) else sum(values)


def mean(values: List[Any], type_: str, _types: Any = None) -> Any:
    """AVG."""
    if not values:
        return None
    if type_ == "double":
        return total(values, type_) / len(values)
    return fitted(half_up(Fraction(sum(values)) / len(values), 39), type_)


def variance(values: List[float], *_: Any) -> Optional[float]:
    """VARIANCE: the values are added in ascending order, one after the other."""
    if len(values) < 2:
        return None
    mean_value = 0.0
    for value in sorted(values, key=order):
        mean_value += value
    mean_value /= len(values)
    squares = 0.0
    for value in sorted(values, key=order):
        squares += (value - mean_value) * (value - mean_value)
    return squares / (len(values) - 1)


def sum_type(a: str, b: str) -> str:
    """The type of a sum of decimals."""
    (p1, s1), (p2, s2) = digits_of(a), digits_of(b)
    return bounded(max(s1, s2) + max(p1 - s1, p2 - s2) + 1, max(s1, s2))


def product_type(a: str, b: str) -> str:
    """The type of a product of decimals."""
    (p1, s1), (p2, s2) = digits_of(a), digits_of(b)
    return bounded(p1 + p2 + 1, s1 + s2)


def bounded(precision: int, scale: int) -> str:
    """A decimal type with at most 38 digits, of which those after the point are given up first."""
    if precision > 38:
        precision, scale = 38, max(38 - (precision - scale), min(scale, 6))
    return f"decimal({precision},{scale})"


def percentile(rows: List[Any], type_: str, types: List[str]) -> Any:
    """PERCENTILE: between two values in proportion."""
    if not rows:
        return None
    values, share = sorted((row[0] for row in rows), key=order), Fraction(rows[0][1])
    place = share * (len(values) - 1)
    index = math.floor(place)
    low, high, fraction = values[index], values[min(index + 1, len(values) - 1)], place - index
    if type_ == "double":
        return low + (high - low) * float(fraction)
    width = sum_type(types[0], types[0])
    step = fitted(product(fitted(high - low, width), fraction), product_type(width, "decimal(4,4)"))
    return fitted(low + step, type_)


def sorting(values: Any) -> List[Any]:
    """What rows are sorted by: NULL comes first."""
    return [(value is not None, order(value)) for value in values]


def by_order(pick: Callable[..., Any]) -> Callable[..., Any]:
    """FIRST and LAST."""

    def found(rows: List[Any], *_: Any) -> Any:
        known = [row for row in rows if all(value is not None for value in row)]
        return pick(known, key=lambda row: sorting([*row[1:], row[0]]))[0] if known else None

    return found


def joined(rows: List[Any], *_: Any) -> Optional[str]:
    """STRING_AGG."""
    if not rows or rows[0][1] is None:
        return None
    return str(rows[0][1]).join(row[0] for row in sorted(rows, key=lambda row: sorting([*row[2:], row[0]])))


_AGGREGATES: Dict[str, Callable[..., Any]] = {
    "VARIANCE": variance,
    "PERCENTILE": percentile,
    "FIRST": by_order(min),
    "LAST": by_order(max),
    "STRING_AGG": joined,
    "SUM": total,
    "AVG": mean,
    "COUNT": lambda values, *_: len(values),
    "COUNT_ALL": lambda values, *_: len(values),
    "COUNT_DISTINCT": lambda values, *_: len({order(value) for value in values}),
    "MIN_AGG": lambda values, *_: min(values, key=order, default=None),
    "MAX_AGG": lambda values, *_: max(values, key=order, default=None),
}


def aggregate_calls(tree: Any) -> List[List[Any]]:
    """The calls of an expression that take all rows of a group."""
    if not isinstance(tree, list):
        return []
    if tree[0] == "apply" and tree[2] in _AGGREGATES:
        return [tree]
    return [call for each in tree[2:] for call in aggregate_calls(each)]


def brought(call: List[Any], row: SeenValues) -> Any:
    """What a row brings into a call: a value, or all values where the call has several arguments."""
    first = calculate(call[3], row)
    return first if first is None or not call[4:] else (first, *(calculate(each, row) for each in call[4:]))


def calculate_group(tree: List[Any], rows: List[SeenValues]) -> Any:
    """The value of an aggregation over the rows of a group."""
    outer = SeenValues(rows[0].values, rows[0].table, rows[0].today)
    for call in aggregate_calls(tree):
        values: List[Any] = [brought(call, row) for row in rows] if call[3:] else [0 for _ in rows]
        known, types = [value for value in values if value is not None], [each[1] for each in call[3:]]
        outer.aggregates[id(call)] = _AGGREGATES[call[2]](known, call[1], types)
    return calculate(tree, outer)


def places_of(window: Dict[str, Any], rows: List[SeenValues], types: Dict[str, str]) -> List[List[Any]]:
    """What puts rows in the order of a window; NULL comes first."""
    return [
        [sorting([read_value(row.values[name], types.get(name, "string"))])[0] for name, _ in window["order"]]
        for row in rows
    ]


def may_follow(one: List[Any], other: List[Any], order_by: List[Any]) -> bool:
    """Whether a row may stand behind another one."""
    for a, b, (_, descending) in zip(one, other, order_by):
        if a != b:
            return bool(b < a if descending else a < b)
    return True


def value_of_window(window: Dict[str, Any], rows: List[SeenValues], types: Dict[str, str]) -> Any:
    """What a call with OVER gives for the rows that it looked at."""
    places = places_of(window, rows, types)
    neighbours = [(places[number - 1], places[number]) for number in range(1, len(places))]
    if not all(may_follow(one, other, window["order"]) for one, other in neighbours):
        return _OUT_OF_ORDER
    name, arguments = window["function"], window["arguments"]
    if name == "ROW_NUMBER":
        return len(rows)
    if name == "RANK":
        return 1 + sum(place != places[-1] for place in places)
    if name == "DENSE_RANK":
        return 1 + sum(one != other for one, other in neighbours)
    if name in {"LAG", "LEAD"}:
        return calculate(arguments[0], rows[0]) if rows else None
    call = ["apply", window["type"], name, *arguments]
    values: List[Any] = [brought(call, row) for row in rows] if arguments else [0 for _ in rows]
    known = [value for value in values if value is not None]
    return _AGGREGATES[name](known, window["type"], [each[1] for each in arguments])


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
