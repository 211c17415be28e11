"""Workspaces made of a few files."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from clew.definitions import LoadedWorkspace, load_workspace

WorkspaceOf = Callable[[Mapping[str, str | bytes]], LoadedWorkspace]


@pytest.fixture
def workspace_of(tmp_path: Path) -> WorkspaceOf:
    """Write files and load them as a workspace; clew.yaml need not be among them."""

    def load(files: Mapping[str, str | bytes]) -> LoadedWorkspace:
        for name, content in {"clew.yaml": "name: test\n", **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_workspace(tmp_path)

    return load
