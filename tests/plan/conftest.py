"""What tests of the compiler share: a workspace to write projects into."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.plan.plan_workspaces import BASE, Checked, TinyWorkspace, project_text


@pytest.fixture
def tiny(tmp_path: Path) -> TinyWorkspace:
    workspace = TinyWorkspace(tmp_path / "workspace")
    workspace.write(BASE)
    return workspace


@pytest.fixture
def check(tiny: TinyWorkspace) -> Callable[..., Checked]:
    """Compiles the project `p` with the operations given, beside other files where there are any."""

    def compile_operations(
        operations: str = "",
        *,
        files: Mapping[str, str] | None = None,
        selectors: str = "",
        more: str = "",
        input_dataset: str = "orders",
    ) -> Checked:
        text = project_text(operations, selectors=selectors, more=more, input_dataset=input_dataset)
        tiny.write({"projects/p.yaml": text, **(files or {})})
        return tiny.check()

    return compile_operations
