import io
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import pytest

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import STORE_BROKEN_PROMISE
from clew.events.snapshot import RunStatus
from clew.events.values import ArtifactRef, Failure, FailureCategory
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.secrets import (
    EnvironmentSecrets,
    FileSecrets,
    RedactingFilter,
    Redactor,
    SecretRef,
    SecretScope,
    SecretsResolver,
)
from clew.runs.stores import RunStores
from tests.runs.runs_workers import FakeExecutors, Site, succeed

SCOPE = SecretScope("acme", "prod")
VALUE = 'p@ss "word"/1'


def test_a_reference_names_a_provider_and_a_secret() -> None:
    ref = SecretRef.parse("secret://env/DB_PASSWORD")
    assert (ref.provider, ref.name, str(ref)) == ("env", "DB_PASSWORD", "secret://env/DB_PASSWORD")


@pytest.mark.parametrize(
    "text", ["DB_PASSWORD", "secret://env", "secret://env/", "secret://file/../x", "secret://file/a/b", "secret:///x"]
)
def test_anything_else_is_not_a_reference(text: str) -> None:
    with pytest.raises(UserError) as refused:
        SecretRef.parse(text)
    assert refused.value.code == "InvalidSecretReference"


def test_variables_are_resolved_per_tenant_and_environment() -> None:
    provider = EnvironmentSecrets({"DB": "any", "PROD__DB": "prod", "ACME__PROD__DB": "acme"})
    assert provider.find("DB", SecretScope("acme", "prod")) == "acme"
    assert provider.find("DB", SecretScope("other", "prod")) == "prod"
    assert provider.find("DB", SecretScope("other", "dev")) == "any"
    assert provider.find("MISSING", SCOPE) is None


def test_no_name_reaches_into_the_variables_of_another_tenant() -> None:
    provider = EnvironmentSecrets({"ACME__PROD__DB": "acme"})
    assert provider.find("ACME__PROD__DB", SecretScope("other", "prod")) is None


def test_files_are_resolved_per_tenant_and_environment_inside_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    (folder / "acme" / "prod").mkdir(parents=True)
    (folder / "acme" / "prod" / "DB").write_text("acme\n")
    (folder / "DB").write_text("any")
    (tmp_path / "outside").write_text("no")
    provider = FileSecrets(folder)
    assert provider.find("DB", SCOPE) == "acme"
    assert provider.find("DB", SecretScope("other", "prod")) == "any"
    assert provider.find("outside", SecretScope("..", "..")) is None


def test_a_secret_that_is_not_there_is_named_by_its_reference() -> None:
    resolver = SecretsResolver({"env": EnvironmentSecrets({})})
    with pytest.raises(UserError) as missing:
        resolver.resolve([SecretRef("env", "DB")], SCOPE)
    assert missing.value.code == "SecretNotFound"
    assert "secret://env/DB" in missing.value.diagnostic.message
    with pytest.raises(UserError) as unknown:
        resolver.resolve([SecretRef("vault", "DB")], SCOPE)
    assert unknown.value.code == "InvalidSecretReference"


def test_a_redactor_knows_a_value_in_its_usual_encodings() -> None:
    redactor = Redactor()
    redactor.learn([VALUE, "", f"{VALUE} and more"])
    text = f"{VALUE} {quote(VALUE, safe='')} {json.dumps(VALUE)} {VALUE} and more."
    assert redactor.text(text) == '[secret] [secret] "[secret]" [secret].'
    assert redactor.value({"a": [VALUE, 1, None], "b": {"c": (VALUE,)}}) == {
        "a": ["[secret]", 1, None],
        "b": {"c": ["[secret]"]},
    }


def test_names_and_paths_are_never_redacted() -> None:
    """Changed, they would name nothing: an event would point to a file that does not exist."""
    redactor = Redactor()
    redactor.learn(["month-end"])
    event = {
        "name": "month-end close",
        "message": "cannot sign in with month-end",
        "artifacts": [{"uri": "runs/month-end/part.json"}, {"uri": "jdbc:x://me:month-end@h/month-end?pw=month-end"}],
        "month-end": 1,
    }
    assert redactor.value(event) == {
        "name": "month-end close",
        "message": "cannot sign in with [secret]",
        "artifacts": [{"uri": "runs/month-end/part.json"}, {"uri": "jdbc:x://me:[secret]@h/month-end?pw=[secret]"}],
        "month-end": 1,
    }


def test_logs_are_written_without_secrets_even_in_tracebacks() -> None:
    redactor = Redactor()
    redactor.learn([VALUE])
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter(redactor))
    logger = logging.getLogger("tests.redaction")
    logger.addHandler(handler)
    try:
        int(f"login failed for {VALUE}")
    except ValueError:
        logger.exception("cannot connect with %s", VALUE)
    finally:
        logger.removeHandler(handler)
    assert VALUE not in stream.getvalue()
    assert "login failed for [secret]" in stream.getvalue()


def using_the_secret(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
    values = context.secrets.resolve("secret://env/DB")
    password = values["secret://env/DB"]
    match attempts[0].step.step_id:
        case "10":
            return [StepOutput.success(ArtifactRef(f"jdbc:x?password={password}", "output"))]
        case "20":
            return [StepOutput.failed(Failure("X", f"no access with {password}", FailureCategory.USER))]
        case _:
            return succeed(attempts, context)


def test_no_value_of_a_secret_reaches_events_snapshots_or_errors(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors(behaviour=using_the_secret), variables={"ACME__DEV__DB": VALUE})
    site.submit(tenant_id="acme", parameters={"credential": "secret://env/DB"})
    assert site.drive() is RunStatus.FAILED
    snapshot = site.snapshot()
    everything = json.dumps([event.to_json() for event in stores.reader.events("run-1")]) + json.dumps(
        snapshot.to_json()
    )
    assert json.dumps(VALUE)[1:-1] not in everything
    assert "secret://env/DB" in everything
    assert snapshot.error is not None
    assert snapshot.error.message == "no access with [secret]"
    assert snapshot.artifacts[0].uri == "jdbc:x?password=[secret]"


def test_an_exception_with_a_secret_is_recorded_without_it(sqlite_stores: RunStores) -> None:
    def leaks(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        password = context.secrets.resolve("secret://env/DB")["secret://env/DB"]
        raise UserError(STORE_BROKEN_PROMISE.anywhere(reason=password))

    site = Site(sqlite_stores, FakeExecutors(behaviour=leaks), variables={"DB": VALUE})
    site.submit()
    assert site.drive() is RunStatus.FAILED
    assert VALUE not in json.dumps([event.to_json() for event in sqlite_stores.reader.events("run-1")])


def test_a_step_that_needs_a_missing_secret_fails_by_its_name(sqlite_stores: RunStores) -> None:
    site = Site(sqlite_stores, FakeExecutors(behaviour=using_the_secret))
    site.submit()
    assert site.drive() is RunStatus.FAILED
    error = site.snapshot().error
    assert error is not None
    assert error.code == "SecretNotFound"
