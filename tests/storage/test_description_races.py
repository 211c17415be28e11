"""Two who describe the same thing at the same moment: one description stays, and what either of them names."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.diagnostics import UserError
from clew.storage.committed import describe_once, described_at
from clew.storage.drafts import draft
from clew.storage.inventory import expanded_links, unnamed_in_run
from clew.storage.layout import part_folder
from clew.storage.local import LocalStorage
from clew.storage.parts import Part, PartFile
from clew.storage.root import StorageRoot
from tests.storage.s3_proxy import Asked, Proxy
from tests.storage.s3_server import S3Server

STEP = part_folder("r", "links", "5")
BATCH = f"{STEP}/0-99"


def links_of_a_writer(root: StorageRoot) -> Part:
    """The files of one who has worked the links out: the same rows as any other, under names of its own."""
    started = draft(root, BATCH)
    with started.create("part-0.parquet") as file:
        pq.write_table(pa.table({"n": [1, 2]}), file)
    [written] = started.files(".parquet")
    return Part("links", "5", (PartFile(written.key, 2, written.size, root.sha256(written.key)),), (), 5)


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest) -> StorageRoot:
    if request.param == "local":
        return LocalStorage(request.getfixturevalue("tmp_path") / "storage")
    server: S3Server = request.getfixturevalue("s3")
    found: StorageRoot = server.through(request.getfixturevalue("proxy").endpoint).storage()
    return found


def test_of_two_descriptions_one_stays_and_everybody_reads_it(root: StorageRoot, proxy: Proxy) -> None:
    parts = [links_of_a_writer(root) for _ in range(2)]
    both = threading.Barrier(2)

    def together(asked: Asked) -> None:
        """Both have looked, and found nothing, before one of them writes."""
        if asked.method == "PUT" and asked.path.endswith("/part.json"):
            both.wait(30)

    with proxy.failing(together), ThreadPoolExecutor(2) as threads:
        told = list(threads.map(lambda part: describe_once(root, BATCH, part), parts))
    kept = described_at(root, f"{BATCH}/part.json")
    assert kept in parts
    assert kept in told
    assert all(describe_once(root, BATCH, part) == kept for part in parts)
    assert [file.key for file in root.files(STEP) if file.name == "part.json"] == [f"{BATCH}/part.json"]


def test_what_the_loser_of_a_race_has_named_elsewhere_is_not_collected(root: StorageRoot) -> None:
    """A store that cannot refuse the second writer lets the first one believe in its own files for a while."""
    first, second, third = (links_of_a_writer(root) for _ in range(3))
    describe_once(root, BATCH, second)
    describe_once(root, STEP, first)
    orphans = {thing.key for thing in unnamed_in_run(root, "r", ())}
    assert orphans == {third.files[0].path.rpartition("/")[0]}
    named = expanded_links(root, "r", 5)
    assert named is not None
    assert all(root.sha256(file.path) == file.sha256 for file in named.files)


def test_a_description_of_files_that_were_collected_while_its_writer_slept_does_not_stay(
    s3: S3Server, proxy: Proxy
) -> None:
    """The store cannot refuse the late description. Links that nobody has described can be worked out again."""
    root = s3.through(proxy.endpoint).storage()
    late, first = links_of_a_writer(root), links_of_a_writer(root)
    asleep = [True]

    def overtaken(asked: Asked) -> None:
        if asked.method == "PUT" and asked.path.endswith(f"{STEP}/part.json") and asleep:
            asleep.clear()
            describe_once(root, STEP, first)
            for thing in list(unnamed_in_run(root, "r", ())):
                root.remove(thing.key)

    with proxy.failing(overtaken), pytest.raises(UserError, match="collected before they were named"):
        describe_once(root, STEP, late)
    assert expanded_links(root, "r", 5) is None
    assert describe_once(root, STEP, first) == first
    assert expanded_links(root, "r", 5) == first
