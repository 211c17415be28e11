"""What users see when an object store fails, and that nothing wrong is ever read."""

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.definitions.storage_addresses import RemoteAddress
from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.file_system import OutOfReach, file_system_failed
from clew.engine.loading.columnar import _fields_of
from clew.engine.loading.source_digests import digest_of, state_of
from clew.storage import store_access
from clew.storage.object_store import ObjectStorage
from clew.storage.source_files import RemoteSourceFile
from clew.storage.store_access import StoreAccess, parse_credential
from clew.storage.store_errors import StoreUnavailable
from tests.storage.s3_proxy import DENIED, EXPIRED, SKEWED, SLOW_DOWN, Answer, Asked, Cut, Fault, Proxy, Silence
from tests.storage.s3_server import KEYS, S3Server

pytestmark = pytest.mark.slow  # failures are tried again, with pauses

CONTENT = bytes(range(256)) * 8000


@pytest.fixture
def root(s3: S3Server, proxy: Proxy) -> ObjectStorage:
    """A storage root behind the proxy, with a file in it."""
    found = s3.through(proxy.endpoint).storage()
    found.write_new("f/a", CONTENT)
    return found


def always(fault: Fault) -> Callable[[Asked], Fault]:
    return lambda _: fault


def when(matches: Callable[[Asked], bool], fault: Fault) -> Callable[[Asked], Fault]:
    return lambda asked: fault if matches(asked) else None


class Times:
    """Something goes wrong a few times, and then no more."""

    def __init__(self, count: int, fault: Fault, method: str = "GET") -> None:
        self.left, self.fault, self.method = count, fault, method

    def __call__(self, asked: Asked) -> Fault:
        if asked.method != self.method or self.left == 0:
            return None
        self.left -= 1
        return self.fault


OPERATIONS: dict[str, Callable[[ObjectStorage], object]] = {
    "read": lambda root: root.read_bytes("f/a"),
    "stat": lambda root: root.stat("f/a"),
    "digest": lambda root: root.sha256("f/a"),
    "write": lambda root: root.write_new("f/b", b"x"),
    "list": lambda root: list(root.files("")),
    "remove": lambda root: root.remove("f/a"),
    "add a line": lambda root: root.add_line("log", "x"),
    "exists": lambda root: root.exists("f/none"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("fault", "says"), [(EXPIRED, "have expired"), (DENIED, "no permission in {store}")], ids=["expired", "denied"]
)
def test_a_refusal_of_the_store_is_one_clear_message(
    root: ObjectStorage, proxy: Proxy, operation: str, fault: Answer, says: str
) -> None:
    with proxy.failing(always(fault)), pytest.raises(PermissionError) as caught:
        OPERATIONS[operation](root)
    assert says.format(store=f"s3://{root.place.store}") in (caught.value.strerror or "")
    for part in KEYS.split(":"):
        assert part not in f"{caught.value!r}{caught.value}{caught.value.__cause__}"


@pytest.mark.parametrize(
    ("fault", "type_", "says"),
    [
        (SLOW_DOWN, StoreUnavailable, "is overloaded or fails"),
        (SKEWED, StoreUnavailable, "the clock of this machine is off"),
        (Answer(403, "InvalidAccessKeyId"), PermissionError, "does not accept the credentials"),
        (Answer(403, "SignatureDoesNotMatch"), PermissionError, "does not accept the credentials"),
    ],
    ids=lambda value: value.code if isinstance(value, Answer) else "",
)
def test_the_reason_of_a_refusal_is_told_though_the_first_answer_has_none(
    root: ObjectStorage, proxy: Proxy, fault: Answer, type_: type[OSError], says: str
) -> None:
    with proxy.failing(always(fault)), pytest.raises(type_) as caught:
        root.read_bytes("f/a")
    assert says in (caught.value.strerror or "")


def test_a_bucket_that_does_not_exist_is_named(s3: S3Server) -> None:
    root = ObjectStorage(RemoteAddress("s3", "no-such-bucket", "clew"), s3.access)
    for name, operation in OPERATIONS.items():
        with pytest.raises(FileNotFoundError) as caught:
            operation(root)
        assert caught.value.strerror == "s3://no-such-bucket does not exist", name


def test_a_store_that_cannot_be_reached_is_named() -> None:
    access = StoreAccess("http://127.0.0.1:1", "us-east-1", path_style=True, credential=parse_credential("s3", KEYS))
    root = ObjectStorage(RemoteAddress("s3", "ledger", "clew"), access)
    with pytest.raises(StoreUnavailable, match="s3://ledger cannot be reached"):
        root.read_bytes("a")


def test_a_store_that_does_not_answer_is_given_up(s3: S3Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_access, "_SILENT_SECONDS", 1)
    root = s3.through(proxy.endpoint).storage()
    root.write_new("f/a", CONTENT)
    silence = when(lambda asked: asked.method == "GET", Silence())
    with proxy.failing(silence), pytest.raises(StoreUnavailable, match="does not answer in time"):
        root.read_bytes("f/a")


def test_a_store_that_fails_now_and_then_is_asked_again(root: ObjectStorage, proxy: Proxy) -> None:
    for fault in (SLOW_DOWN, Answer(500, "InternalError"), Cut()):
        with proxy.failing(Times(2, fault)):
            assert root.read_bytes("f/a") == CONTENT
        with proxy.failing(Times(2, fault, "PUT")) if isinstance(fault, Answer) else proxy.failing(always(None)):
            root.write_new(f"f/{type(fault).__name__}{getattr(fault, 'status', '')}", CONTENT)
    assert all(root.read_bytes(file.key) == CONTENT for file in root.files("f"))


def test_a_body_that_is_cut_in_the_middle_is_never_taken_for_the_whole(root: ObjectStorage, proxy: Proxy) -> None:
    with proxy.failing(when(lambda asked: asked.method == "GET", Cut())):
        for read in (root.read_bytes, root.sha256):
            with pytest.raises(StoreUnavailable):
                read("f/a")


def test_a_table_whose_bytes_are_cut_is_never_read_in_part(root: ObjectStorage, proxy: Proxy) -> None:
    table = pa.table({"n": list(range(200_000))})
    content = io.BytesIO()
    pq.write_table(table, content)
    root.write_new("f/t.parquet", content.getvalue())
    with root.open_parquet("f/t.parquet") as opened:
        footer = opened.metadata
    cut = when(lambda asked: asked.method == "GET", Cut())
    with proxy.failing(cut), root.open_parquet("f/t.parquet", footer) as opened, pytest.raises(OSError, match="curl"):
        opened.read()
    with proxy.failing(Times(2, Cut())), root.open_parquet("f/t.parquet", footer) as opened:
        assert opened.read() == table


def test_an_upload_that_fails_leaves_no_file(root: ObjectStorage, proxy: Proxy) -> None:
    with proxy.failing(when(lambda asked: asked.method in {"PUT", "POST"}, DENIED)):
        with pytest.raises(PermissionError, match="no permission"):
            root.write_new("f/b", CONTENT)
        with pytest.raises(PermissionError, match="no permission"), root.create("f/c") as file:
            file.write(CONTENT * 20)
    # The last part of a large file is refused: the parts that arrived make no file.
    second = when(lambda asked: "partNumber=2" in asked.query, DENIED)
    with proxy.failing(second), pytest.raises(PermissionError, match="no permission"), root.create("f/d") as file:
        file.write(CONTENT * 20)
    assert [file.key for file in root.files("")] == ["f/a"]


def test_a_file_that_is_too_large_for_the_store_to_copy_is_copied_all_the_same(
    root: ObjectStorage, proxy: Proxy
) -> None:
    """S3 copies up to 5 GB with one request."""
    problem = "The specified copy source is larger than the maximum allowable size for a copy source: 5368709120"
    root.write_new("g/b", b"what was there before")
    with proxy.failing(Times(1, Answer(400, "InvalidRequest", problem), "PUT")):
        root.copy("f/a", "g/b")
    assert root.read_bytes("g/b") == CONTENT
    with proxy.failing(Times(1, DENIED, "PUT")), pytest.raises(PermissionError, match="no permission"):
        root.copy("f/a", "g/b")


def test_credentials_that_expire_while_a_file_is_read_are_named(root: ObjectStorage, proxy: Proxy) -> None:
    with root.open("f/a") as opened:
        assert opened.read(10) == CONTENT[:10]
        with proxy.failing(always(EXPIRED)), pytest.raises(PermissionError, match="have expired"):
            opened.read(1 << 21)


def test_a_store_that_refuses_is_blamed_and_not_the_source_that_lies_there(root: ObjectStorage, proxy: Proxy) -> None:
    file = RemoteSourceFile(root.spark_uri("f/a"), "f/a", len(CONTENT), is_local=False, root=root, key="f/a")
    for ask in (digest_of, state_of, _fields_of):
        for fault, kind in ((EXPIRED, UserError), (SLOW_DOWN, TransientFailure)):
            with proxy.failing(always(fault)), pytest.raises(OutOfReach) as caught:
                ask(file)
            told = file_system_failed(caught.value)
            assert (type(told), told.code if told else None) == (kind, "StorageUnavailable")
    with pytest.raises(UserError, match="is not a Parquet file"):
        _fields_of(file)


def test_credentials_are_not_shown(s3: S3Server) -> None:
    root = s3.storage()
    for text in (repr(root), str(root), repr(root.access), root.address, root.spark_uri("x"), root.source("x")):
        assert not any(part in text for part in KEYS.split(":"))
