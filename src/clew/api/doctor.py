"""Looks at everything that a run needs, before one fails: the machine, and the places that an environment names.

Nothing stays behind: in each storage root that exists a file is written, read and removed; the state store is read.
"""

import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.api.findings import Diagnosis, Symptom, failed, failures, ok, skipped, warning
from clew.api.machine import jars, python, spark_and_java
from clew.api.workspace import open_workspace
from clew.definitions import CatalogDatasource, Datasource, FilesDatasource
from clew.definitions.storage_addresses import parse_address
from clew.diagnostics import ClewError
from clew.diagnostics.codes.workspace import WORKSPACE_NOT_FOUND
from clew.runs.environment import PRIVATE_FOLDER, RunEnvironment
from clew.runs.secrets import REFERENCE, SecretRef
from clew.storage.layout import run_folder, scratch_folder
from clew.storage.root import StorageRoot
from clew.store.looking import look_into_sqlite, time_of_postgresql

_LITTLE_ROOM = 2**30
_OFF_S, _FAR_OFF_S = 2.0, 60.0
"""Seconds by which clocks may differ before that is told, and before leases, tokens and signatures go wrong."""


def examine(folder: Path, environment: str | None = None, *, starts_spark: bool = False) -> Diagnosis:
    """Look at the machine, and at the environment of the workspace that a folder belongs to.

    Outside of a workspace, the machine is all there is.
    """
    try:
        workspace = open_workspace(folder, environment)
        settings, name = workspace.run_environment, workspace.name
    except ClewError as error:
        machine = [python(), *spark_and_java("local[*]")]
        if error.code == WORKSPACE_NOT_FOUND.name and environment is None:
            return Diagnosis(None, None, [*machine, skipped("workspace", f"{folder.absolute()} belongs to none")])
        return Diagnosis(None, environment, [*machine, *failures("workspace", error)])
    datasources = workspace.loaded.workspace.datasources
    findings = [
        python(),
        *spark_and_java(settings.settings.spark.master),
        *jars(settings, datasources),
        *_definitions(len(workspace.check().diagnostics), name),
        *_secrets(settings, datasources),
        *_storage(settings),
        *_database(settings),
        *_permissions(settings, datasources),
    ]
    if starts_spark:
        findings += _started(settings, datasources)
    return Diagnosis(name, settings.name, findings)


def _definitions(errors: int, name: str) -> Iterator[Symptom]:
    if errors:
        yield failed("workspace", f"{errors} error{'' if errors == 1 else 's'} in its files", "run `clew check`")
    else:
        yield ok("workspace", name)


def _secrets(environment: RunEnvironment, datasources: Sequence[Datasource]) -> Iterator[Symptom]:
    """Every secret that the environment and its datasources refer to can be resolved."""
    settings = environment.settings
    named = [settings.state_store_credential_ref, settings.object_store.credential_ref, settings.tracelink.key_ref]
    named += [each.credential_ref for each in datasources if not isinstance(each, CatalogDatasource)]
    named += [str(value) for value in settings.spark.config.values() if str(value).startswith(REFERENCE)]
    references = list(dict.fromkeys(filter(None, named)))
    resolved = 0
    for reference in references:
        try:
            environment.secrets().resolve([SecretRef.parse(reference)], environment.scope)
            resolved += 1
        except ClewError as error:
            yield from failures("secrets", error)
    if resolved == len(references):
        yield ok("secrets", f"{resolved} resolved" if references else "none needed")


def _storage(environment: RunEnvironment) -> Iterator[Symptom]:
    """Files can be written, read, listed and removed, and the clock of the store is near ours."""
    for address in dict.fromkeys((environment.settings.storage_root, environment.settings.sandbox_root)):
        place = parse_address(address, environment.root)
        if isinstance(place, Path) and not place.exists():
            yield _to_be_made(place)
            continue
        try:
            root = environment.storage(address)
            ahead = _tried(root)
        except ClewError as error:
            yield from failures("storage", error)
        except OSError as error:
            remedy = "create the folder or bucket, and let this user write to it"
            yield failed("storage", f"{address} cannot be used: {error.strerror or error}", remedy)
        else:
            if isinstance(place, Path):
                yield _room(root, place)
            else:
                yield ok("storage", f"{root.address} can be used")
                yield _clock(ahead, root.address)


def _to_be_made(place: Path) -> Symptom:
    above = next(folder for folder in place.parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        return failed("storage", f"{place} cannot be created", f"let this user write to {above}, or name another place")
    return ok("storage", f"{place}, which the first run creates")


def _tried(root: StorageRoot) -> float:
    """Write, read, list and remove a file. By how many seconds the clock of the store is ahead of ours."""
    run_id = f"doctor-{uuid.uuid4()}"
    folder = scratch_folder(run_id, "probe")
    key, content = f"{folder}/probe", os.urandom(16)
    try:
        started = time.time()
        root.write_new(key, content)
        written = (started + time.time()) / 2
        if root.read_bytes(key) != content or [file.key for file in root.files(folder)] != [key]:
            raise OSError("a file that was just written is not there, or another")
        return root.stat(key).modified - written
    finally:
        root.remove(run_folder(run_id))


def _room(root: StorageRoot, place: Path) -> Symptom:
    free = shutil.disk_usage(place).free
    found = f"{root.address} can be used, {free / 2**30:,.1f} GB free"
    return ok("storage", found) if free >= _LITTLE_ROOM else warning("storage", found, "make room on that disk")


def _clock(ahead: float, whose: str) -> Symptom:
    found = f"{abs(ahead):.1f} s {'behind' if ahead > 0 else 'ahead of'} {whose}"
    remedy = "synchronise the clock of this machine (NTP)"
    if abs(ahead) >= _FAR_OFF_S:
        return failed("clock", found, remedy)
    return warning("clock", found, remedy) if abs(ahead) >= _OFF_S else ok("clock", found)


def _database(environment: RunEnvironment) -> Iterator[Symptom]:
    """The state store answers. It is neither created nor upgraded."""
    path = environment.embedded_store
    try:
        if path is None:
            before = time.time()
            theirs = time_of_postgresql(environment.store_url(environment.secrets()))
            yield ok("database", f"{environment.settings.state_store} answers")
            yield _clock(theirs - (before + time.time()) / 2, "the database")
        elif path.exists():
            look_into_sqlite(path, environment.name)
            yield ok("database", str(path))
        else:
            yield ok("database", f"{path}, which the first run creates")
    except ClewError as error:
        yield from failures("database", error)


def _permissions(environment: RunEnvironment, datasources: Sequence[Datasource]) -> Iterator[Symptom]:
    """Others cannot enter the private folder, and this user can read the folders of datasources."""
    private = environment.root / PRIVATE_FOLDER
    if os.name == "posix" and private.is_dir() and private.stat().st_mode & 0o077:
        yield warning("permissions", f"{private} is open to other users", f"run: chmod -R go= {private}")
    if not os.access(environment.root, os.W_OK):
        remedy = "let this user write to it, or name other places as state_store, storage_root and sandbox_root"
        yield warning("permissions", f"{environment.root} cannot be written to", remedy)
    unread = 0
    for datasource in datasources:
        if not isinstance(datasource, FilesDatasource):
            continue
        place = parse_address(datasource.options.root, environment.root)
        if isinstance(place, Path) and place.exists() and not os.access(place, os.R_OK | os.X_OK):
            unread += 1
            yield failed("permissions", f"{place} cannot be read", f'let this user read it: "{datasource.id}" is there')
    if not unread:
        yield ok("permissions", "the folders of all datasources that exist can be read")


def _started(environment: RunEnvironment, datasources: Sequence[Datasource]) -> list[Symptom]:
    """Spark starts as the environment says, and reads and writes what this process does."""
    try:
        from clew.engine.session import session_of  # noqa: PLC0415 - see `machine`
        from clew.engine.sharing import try_storage  # noqa: PLC0415

        spark = session_of(environment, datasources, environment.secrets())
        try_storage(spark, environment.storage_root, f"doctor-{uuid.uuid4()}")
        return [ok("spark session", f"Spark {spark.version} on {environment.settings.spark.master} uses the storage")]
    except ClewError as error:
        return list(failures("spark session", error))
