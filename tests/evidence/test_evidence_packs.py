"""Evidence packs: made by `clew evidence`, verified without Clew; whatever is changed in one is noticed."""

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clew
from clew.cli.main import run as command
from clew.events.chain import SealKey
from clew.evidence import pack_verifier
from clew.evidence.archive import signed_pack
from clew.evidence.signing import EvidenceKey
from clew.runs.clock import utc_now
from tests.tiers import examples
from tests.trace.interpreted_shop import Ran, ran_shop

TOTAL = 'currency = "EUR" AND total IS NOT NULL'
MADE = ("verify.py", "public-key.pem", "statement.dsse.json")


@dataclass(frozen=True)
class Made:
    """A pack about a total of the report, which rests on rows of another run."""

    ran: Ran
    path: Path
    folder: Path

    @property
    def members(self) -> dict[str, bytes]:
        return pack_verifier.read_archive(self.path)

    @property
    def root(self) -> Path:
        return self.ran.shop.root

    @property
    def key(self) -> EvidenceKey:
        return EvidenceKey.of(SealKey(bytes.fromhex((self.root / ".clew/keys/dev.key").read_text().strip())))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    with ran_shop(tmp_path_factory.mktemp("shop")) as ran, pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("packs")
        patch.chdir(ran.shop.root)
        path = folder / "pack.zip"
        assert command(["evidence", ran.report, "--where", TOTAL, "total", "-o", str(path)]) == 0
        yield Made(ran, path, folder)


def bare(*arguments: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Python alone: no packages, no environment, not the folder it is called from."""
    return subprocess.run(
        [sys.executable, "-I", "-S", *map(str, arguments)], cwd=cwd, env={}, capture_output=True, text=True, check=False
    )


def zipped(members: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return written.getvalue()


@pytest.fixture
def findings(made: Made, tmp_path: Path) -> Callable[..., list[str]]:
    """What the verifier finds in a pack with some members replaced, or left out."""

    def call(changes: Mapping[str, bytes | None], key: str | None = None) -> list[str]:
        members = {name: content for name, content in {**made.members, **changes}.items() if content is not None}
        path = tmp_path / "changed.zip"
        path.write_bytes(zipped(members))
        return pack_verifier.verify(path, key).findings

    return call


def test_a_pack_is_verified_by_python_alone(made: Made, tmp_path: Path) -> None:
    assert bare("-c", "import clew", cwd=tmp_path).returncode == 1
    (tmp_path / "verify.py").write_bytes(made.members["verify.py"])
    sent = bare("verify.py", made.path, "--key", made.key.fingerprint, cwd=tmp_path)
    assert (sent.returncode, sent.stdout.splitlines()[-1], sent.stderr) == (0, "intact", "")
    folder = tmp_path / "unpacked"
    shutil.unpack_archive(made.path, folder)
    unpacked = bare(folder / "verify.py", cwd=tmp_path)
    assert (unpacked.returncode, unpacked.stdout.splitlines()[-1]) == (0, "intact")
    counted = {
        kind: int(number.replace(",", ""))
        for kind, number in re.findall(r"^([a-z ]+): +([\d,]+)$", sent.stdout, re.MULTILINE)
    }
    # SUM(usd) over three rows of January, each ROUND(amount * r.rate, 2) in the run that closed the month.
    assert (counted["expressions"], counted["explanations"], counted["plans"]) == (4, 1, 2)
    (folder / "rows.json").write_bytes((folder / "rows.json").read_bytes().replace(b'"6.60"', b'"6.61"', 1))
    changed = bare(folder / "verify.py", cwd=tmp_path)
    assert (changed.returncode, changed.stdout.splitlines()[0]) == (1, "rows.json was changed")


def test_a_pack_says_who_made_it_when_with_what_and_from_which_rows(made: Made) -> None:
    evidence = json.loads(made.members["evidence.json"])
    assert evidence["made"]["role"] == "admin"
    assert {"at", "by", "environment", "tenant", "about"} <= evidence["made"].keys()
    assert evidence["environment"]["clew"] == clew.__version__
    assert {run["plan_digest"] for run in evidence["runs"].values()} == {
        Path(name).stem for name in made.members if name.startswith("plan/")
    }
    rows = json.loads(made.members["rows.json"])["rows"]
    orders = {
        (row["source"]["file"], row["source"]["line"], row["values"]["amount"])
        for row in rows
        if row["dataset"] == "orders"
    }
    assert orders == {("orders.csv", 3, "2.00"), ("orders.csv", 5, "4.00"), ("orders.csv", 7, "6.00")}
    assert all(len(row["kept_in"]["sha256"]) == 64 for row in rows if row["row_id"])
    assert {row["dataset"] for row in rows} == {"orders", "closed", "rates"}
    page = made.members["index.html"].decode()
    for told in ("ROUND(amount * r.rate, 2)", "orders.csv", made.key.fingerprint, made.ran.report, "RunQueued"):
        assert told in page
    assert "<script" not in page
    assert "http" not in page.replace("https://in-toto.io", "")
    assert (made.root / "projects/report.yaml").read_bytes() == made.members["project/projects/report.yaml"]


def test_openssl_agrees_about_key_and_signature(made: Made, tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    assert openssl is not None, "the documentation says how to check a pack with openssl"
    envelope = json.loads(made.members["statement.dsse.json"])
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"].encode()
    (tmp_path / "signed").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
    (tmp_path / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    (tmp_path / "key.pem").write_bytes(made.members["public-key.pem"])
    check = ["pkeyutl", "-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", "signed", "-sigfile", "signature"]
    assert subprocess.run([openssl, *check], cwd=tmp_path, capture_output=True, check=False).returncode == 0
    export = [openssl, "pkey", "-pubin", "-in", "key.pem", "-outform", "DER"]
    der = subprocess.run(export, cwd=tmp_path, capture_output=True, check=True)
    assert hashlib.sha256(der.stdout).hexdigest() == made.key.fingerprint
    statement = json.loads(payload)
    assert {each["name"] for each in statement["subject"]} == made.members.keys() - {"statement.dsse.json"}


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_byte_that_is_changed_in_any_member_is_noticed(
    made: Made, findings: Callable[..., list[str]], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(made.members)))
    content = bytearray(made.members[name])
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    assert findings({name: bytes(content)}) != []


def test_any_byte_of_the_envelope_counts(made: Made, findings: Callable[..., list[str]]) -> None:
    """It is the one member that no digest covers: every place of it is tried."""
    content = made.members["statement.dsse.json"]
    start = content.index(b'"payloadType"')
    for position in (*range(20), *range(start - 8, len(content))):
        changed = bytearray(content)
        changed[position] ^= 1
        assert findings({"statement.dsse.json": bytes(changed)}) != [], position


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_archive_with_a_changed_byte_is_refused_or_holds_the_same_members(
    made: Made, tmp_path: Path, data: st.DataObject
) -> None:
    content = bytearray(made.path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "changed.zip"
    path.write_bytes(content)
    report = pack_verifier.verify(path)
    assert report.findings or pack_verifier.read_archive(path) == made.members


def test_members_that_are_missing_or_added_are_noticed(made: Made, findings: Callable[..., list[str]]) -> None:
    assert findings({}) == []
    for name in made.members:
        assert findings({name: None}) != [], name
    assert findings({"notes.txt": b"trust me"}) == ["notes.txt does not belong to the pack"]


def doctored(made: Made, member: str, *edits: tuple[bytes, bytes]) -> dict[str, bytes]:
    """The members with an edit, without what is made when a pack is signed."""
    members = {name: content for name, content in made.members.items() if name not in MADE}
    for old, new in edits:
        assert old in members[member]
        members[member] = members[member].replace(old, new)
    return members


def signed(members: Mapping[str, bytes], key: EvidenceKey) -> dict[str, bytes]:
    return dict(signed_pack(members, key, made_at=utc_now(), predicate={}, summary={}).members)


def test_a_value_with_recomputed_digests_is_noticed_by_the_signature(
    made: Made, findings: Callable[..., list[str]]
) -> None:
    """The attacker recomputes every digest; without the key, the signature is that of another statement."""
    edited = doctored(made, "rows.json", (b'"6.00"', b'"7.00"'))
    another = EvidenceKey.of(SealKey(b"a key that the attacker has made"))
    forged = signed(edited, another)
    assert "the signature of the statement is wrong" in findings({**forged, "public-key.pem": made.key.public_pem})
    told = findings(forged, key=made.key.fingerprint)
    assert any(f"signed with the key {another.fingerprint}" in each for each in told)


WRONG = {
    "a product": [(b'"stored": "6.60"', b'"stored": "6.70"'), (b'"value": "6.60"', b'"value": "6.70"')],
    "a sum": [(b'"value": "13.20"', b'"value": "13.30"')],
    "an input": [(b'"value": "6.00"', b'"value": "6.10"')],
    "a joined row": [(b'"rate": "1.1000"', b'"rate": "1.2000"')],
    "an expression": [(b"ROUND(amount * r.rate, 2)", b"ROUND(amount * r.rate, 1)")],
    "the number of rows": [(b'"count": 3', b'"count": 2')],
    "a line": [(b'"line": 7', b'"line": 8')],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_tree_that_does_not_add_up_is_noticed_though_the_right_key_has_signed_it(
    made: Made, findings: Callable[..., list[str]], wrong: str
) -> None:
    [member] = [name for name in made.members if name.startswith("explanations/")]
    found = findings(signed(doctored(made, member, *WRONG[wrong]), made.key))
    assert found
    assert all(each.startswith(member) for each in found)


def test_arithmetic_is_recalculated_from_the_plan(made: Made, findings: Callable[..., list[str]]) -> None:
    """The value, all that rests on it, and the row are changed alike: only the expression says that it is wrong."""
    members = doctored(made, "rows.json", (b'"6.60"', b'"9.60"'))
    [member] = [name for name in members if name.startswith("explanations/")]
    members[member] = members[member].replace(b'"6.60"', b'"9.60"').replace(b'"13.20"', b'"16.20"')
    [problem] = findings(signed(members, made.key))
    assert problem == f"{member}: usd of 106: stored as 9.60, but ROUND(amount * r.rate, 2) gives 6.6"


EVENTS = {
    "an event that is gone": lambda lines: lines[:3] + lines[4:],
    "the last event": lambda lines: lines[:-1],
    "a hash": lambda lines: [*lines[:2], lines[2].replace('"hash":"', '"hash":"0'), *lines[3:]],
}


@pytest.mark.parametrize("edit", EVENTS)
def test_a_history_that_does_not_hold_together_is_noticed(
    made: Made, findings: Callable[..., list[str]], edit: str
) -> None:
    members = doctored(made, "rows.json")
    name = f"history/{made.ran.january}/events.jsonl"
    lines: list[str] = EVENTS[edit](members[name].decode().splitlines())  # type: ignore[no-untyped-call]
    members[name] = "".join(f"{line}\n" for line in lines).encode()
    assert any(made.ran.january in each for each in findings(signed(members, made.key)))


def test_another_plan_and_another_description_are_noticed(made: Made, findings: Callable[..., list[str]]) -> None:
    plan = next(name for name in made.members if name.startswith("plan/") and b"ROUND" in made.members[name])
    found = findings(
        signed(doctored(made, plan, (b'["constant", "integer", "2"]', b'["constant", "integer", "3"]')), made.key)
    )
    assert any("the plan is not the one that the run was started with" in each for each in found)
    part = f"history/{made.ran.january}/parts/001.json"
    found = findings(signed(doctored(made, part, (b'"rows": 4', b'"rows": 5')), made.key))
    assert any("is not the description that an event names" in each for each in found)


@pytest.fixture
def answer(made: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def call(*arguments: str, cwd: Path = made.root) -> Any:
        monkeypatch.chdir(cwd)
        code = command([*arguments, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return call


def test_clew_verifies_packs_and_the_seals_of_their_events(
    made: Made, tmp_path: Path, answer: Callable[..., Any]
) -> None:
    code, found = answer("verify", str(made.path))
    assert (code, found["intact"], found["is_own_key"]) == (0, True, True)
    assert found["checked"]["seals"] == found["checked"]["events"] == 22
    code, found = answer("verify", str(made.path), cwd=tmp_path)
    assert (code, found["intact"], found["is_own_key"]) == (0, True, None)
    code, found = answer("verify", str(made.path), "--key", "00" * 32, cwd=tmp_path)
    assert (code, found["intact"]) == (1, False)
    members = doctored(made, f"history/{made.ran.january}/events.jsonl", (b'"requested_by":"', b'"requested_by":"not '))
    (tmp_path / "forged.zip").write_bytes(zipped(signed(members, made.key)))
    code, found = answer("verify", str(tmp_path / "forged.zip"))
    assert (code, found["findings"]) == (
        1,
        [{"subject": f"run {made.ran.january}", "problem": "event 1: its seal is wrong"}],
    )
    (tmp_path / "broken.zip").write_bytes(made.path.read_bytes()[:1000])
    code, found = answer("verify", str(tmp_path / "broken.zip"))
    assert (code, found["intact"], len(found["findings"])) == (1, False, 1)


def test_every_value_of_an_output_and_a_run_that_failed(made: Made, tmp_path: Path, answer: Callable[..., Any]) -> None:
    pack = tmp_path / "output.zip"
    code, told = answer("evidence", made.ran.report, "--output", "20", "-o", str(pack))
    assert (code, told["explanations"]) == (0, 4)  # two currencies with their totals
    assert pack_verifier.verify(pack, told["key"]).findings == []
    code, told = answer("evidence", made.ran.failed, "-o", str(pack))
    assert (code, told["explanations"], told["rows"]) == (0, 0, 0)
    assert pack_verifier.verify(pack).findings == []
    assert answer("verify", "--all")[0] == 0  # that packs were made is in the ledger


MISTAKES = [
    (["--where", "id = 1"], "WrongUsage"),
    (["ROW"], "WrongUsage"),
    (["--where", "id = 1", "usd", "--output", "20"], "WrongUsage"),
    (["--output", "10"], "NotAnOutput"),
    (["--where", "id = 999", "usd"], "RowNotFound"),
    (["--where", TOTAL, "nothing"], "UnknownColumn"),
]


@pytest.mark.parametrize(("arguments", "code"), MISTAKES)
def test_mistakes_are_named_and_nothing_is_written(
    made: Made, tmp_path: Path, answer: Callable[..., Any], arguments: list[str], code: str
) -> None:
    exit_code, told = answer("evidence", made.ran.report, *arguments, "-o", str(tmp_path / "pack.zip"))
    assert exit_code != 0
    assert told["error"]["code"] == code
    assert list(tmp_path.iterdir()) == []


def test_python_makes_the_same_packs(made: Made, tmp_path: Path) -> None:
    with clew.open(made.root) as workspace:
        run = workspace.get_run(made.ran.report)
        pack = run.evidence(where=TOTAL, column="total")
        saved = pack.save(tmp_path / "pack.zip")
        found = workspace.verify_pack(saved, key=pack.fingerprint)
        found_reads = workspace.operations.access_records(subject_id=run.id, limit=10)
    assert found.is_intact
    detail = next(each.detail for each in found_reads if each.detail.startswith("evidence pack"))
    assert TOTAL in detail
    assert re.search(r"; returned \d+ rows of total, ", detail)
    kept = {name for name in made.members if name.startswith(("plan/", "explanations/", "project/"))}
    assert {name: pack.members[name] for name in kept} == {name: made.members[name] for name in kept}
