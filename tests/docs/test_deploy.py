"""What `deploy/` has for containers: schemas accept it, its commands exist, and its health check works."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema import Draft7Validator

from clew.cli.main import command_line
from clew.sample import write_sample
from tests.storage.s3_server import KEYS, S3Server

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
ENVIRONMENT = yaml.safe_load((DEPLOY / "environment.yaml").read_text(encoding="utf-8"))["environments"]["prod"]
SECRETS = set(re.findall(r"secret://env/(\w+)", json.dumps(ENVIRONMENT)))
MANIFESTS = [
    (path.name, manifest)
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
PODS = [manifest["spec"]["template"]["spec"] for _, manifest in MANIFESTS if "template" in manifest.get("spec", {})]


def instruction(name: str) -> list[str]:
    """What follows an instruction of the container recipe, each time that it occurs."""
    return [" ".join(found.split()) for found in re.findall(rf"^{name} (.*)$", CONTAINERFILE, re.MULTILINE)]


def require_command(words: list[str]) -> None:
    """A command of Clew with options that it has."""
    command = command_line().commands[words[0]]
    known = {name for parameter in command.params for name in parameter.opts}
    assert {word.partition("=")[0] for word in words[1:] if word.startswith("--")} <= known


def test_the_compose_file_is_one() -> None:
    problems = list(Draft7Validator(get_builtin_schema("vendor.compose-spec")).iter_errors(COMPOSE))
    assert [problem.message for problem in problems] == []
    assert {"database", "storage", "migration", "server", "worker"} == set(COMPOSE["services"])


@pytest.mark.parametrize(("name", "manifest"), MANIFESTS, ids=[f"{name}-{each['kind']}" for name, each in MANIFESTS])
def test_a_manifest_is_what_kubernetes_takes(name: str, manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_there_is_a_server_workers_and_a_migration() -> None:
    assert [(name, each["kind"]) for name, each in MANIFESTS if "template" in each.get("spec", {})] == [
        ("migration.yaml", "Job"),
        ("server.yaml", "Deployment"),
        ("worker.yaml", "Deployment"),
    ]


def test_every_command_exists_with_its_options() -> None:
    [command] = instruction("CMD")[-1:]
    require_command(json.loads(command))
    for service in COMPOSE["services"].values():
        if service.get("image") == "clew":
            require_command(service["command"])
    for pod in PODS:
        require_command(pod["containers"][0]["args"])


def test_nothing_runs_as_root_or_writes_where_it_need_not() -> None:
    assert instruction("USER") == ["10001"]
    assert all(pod["securityContext"]["runAsNonRoot"] for pod in PODS)
    assert all(pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] for pod in PODS)
    assert all(service["read_only"] for service in COMPOSE["services"].values() if service.get("image") == "clew")


def test_the_recipe_copies_what_is_there_and_the_ignored_rest_is_not_sent() -> None:
    sources = [word for line in instruction("COPY") if not line.startswith("--from") for word in line.split()[:-1]]
    assert all((ROOT / source).exists() for source in sources)
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] == "!"}
    assert set(sources) == let_in


def test_every_secret_of_the_environment_reaches_every_container() -> None:
    assert {"CLEW_DATABASE_PASSWORD", "CLEW_STORE_KEYS", "CLEW_SEAL_KEY"} == SECRETS
    for service in COMPOSE["services"].values():
        if service.get("image") == "clew":
            assert set(service["environment"]) >= SECRETS
    [secret] = [manifest for _, manifest in MANIFESTS if manifest["kind"] == "Secret"]
    assert set(secret["stringData"]) == SECRETS
    assert all(pod["containers"][0]["envFrom"] == [{"secretRef": {"name": secret["metadata"]["name"]}}] for pod in PODS)


def test_what_a_container_writes_goes_to_a_volume() -> None:
    [variables] = instruction("ENV")
    folders = {ENVIRONMENT["evidence"]["checkpoints"], *re.findall(r"(?:DIRS|DIR)=(/\w+)", variables)}
    assert folders == {"/checkpoints", "/scratch"}
    assert all(folder in CONTAINERFILE for folder in folders)
    for service in COMPOSE["services"].values():
        if service.get("image") == "clew":
            assert folders <= {volume.split(":")[1] for volume in service["volumes"] if volume[-3:] != ":ro"}
    for pod in PODS:
        mounts = pod["containers"][0]["volumeMounts"]
        assert folders <= {mount["mountPath"] for mount in mounts if not mount.get("readOnly")}
        assert {mount["name"] for mount in mounts} == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.slow
def test_nothing_is_written_into_the_workspace(postgres_url: str, s3: S3Server, tmp_path: Path) -> None:
    """With the environment of deploy/, where only addresses differ: a run that fails for want of Java, and commands."""
    workspace, bucket = tmp_path / "workspace", s3.new_bucket()
    write_sample(workspace)
    changed = {
        "state_store": postgres_url,
        "storage_root": f"s3://{bucket}/storage",
        "sandbox_root": f"s3://{bucket}/sandbox",
        "object_store": {**ENVIRONMENT["object_store"], "endpoint": s3.endpoint},
        "evidence": {**ENVIRONMENT["evidence"], "checkpoints": str(tmp_path / "checkpoints")},
        "sinks": {"close-review": {"type": "capture_store", "path": f"s3://{bucket}/review"}},
    }
    assert set(changed) - {"sinks"} < set(ENVIRONMENT)
    settings = yaml.safe_load((workspace / "clew.yaml").read_text(encoding="utf-8"))
    settings |= {"default_environment": "prod", "environments": {"prod": {**ENVIRONMENT, **changed}}}
    (workspace / "clew.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    before = sorted(workspace.rglob("*"))
    secrets = {"CLEW_DATABASE_PASSWORD": "not-asked-for-4711", "CLEW_STORE_KEYS": KEYS, "CLEW_SEAL_KEY": "5e" * 32}

    def clew(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "clew.cli", *words]
        environment = {**os.environ, **secrets, "JAVA_HOME": str(tmp_path)}
        return subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True, check=False)

    for words in (COMPOSE["services"]["migration"]["command"], ["token", "create", "admin", "--role", "admin"]):
        done = clew(*words)
        assert (done.returncode, done.stderr) == (0, ""), words
    failed = json.loads(clew("run", "gl-close", "--period", "2026-01", "--json").stdout)
    assert (failed["status"], failed["error"]["code"]) == ("FAILED", "JavaMissing")
    assert clew("verify", "--all").returncode == 0
    assert (tmp_path / "checkpoints" / "prod.jsonl").is_file()
    assert sorted(workspace.rglob("*")) == before


@pytest.mark.slow
def test_the_server_of_the_recipe_passes_its_health_check(tmp_path: Path) -> None:
    write_sample(tmp_path)
    token = [sys.executable, "-m", "clew.cli", "token", "create", "admin", "--role", "admin"]
    subprocess.run(token, cwd=tmp_path, check=True, capture_output=True)
    words = json.loads(instruction("CMD")[-1])
    with subprocess.Popen(
        [sys.executable, "-m", "clew.cli", *words, "--port", "0", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            started = ""
            while not started.endswith("\n}\n"):
                started += server.stdout.readline()
            port = json.loads(started)["url"].rpartition(":")[2]
            [check] = [line.partition("CMD ")[2] for line in instruction("HEALTHCHECK")]
            [_, flag, code] = json.loads(check)
            probe = [sys.executable, flag, code.replace(":8765/", f":{port}/")]
            assert f":{port}/" in shlex.join(probe)
            done = subprocess.run(probe, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        finally:
            server.terminate()
