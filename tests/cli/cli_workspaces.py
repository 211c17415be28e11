"""Small workspaces, written by the tests that need them."""

from collections.abc import Mapping
from pathlib import Path

SMALL: Mapping[str, str] = {
    "clew.yaml": "name: small\n",
    "datasources/files.yaml": "{id: files, type: files, options: {root: data}}\n",
    "resolvers/tables.yaml": """
id: tables
is_default: true
rules:
  - {name: all, strategy: {type: path, datasource_id: files, path: "{table}.csv"}}
""",
    "datasets/sales.yaml": """
id: sales
main_table:
  name: sales
  temporal_mode: period
  columns: [{name: shop, type: string}, {name: amount, type: "decimal(10,2)"}]
""",
    "projects/report.yaml": """
id: report
input_dataset: sales
operations:
  - {seq: 1, name: Keep amounts, type: update, arguments: {assignments: [{column: copy, expression: amount}]}}
""",
}


def write_workspace(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A workspace with these files beside those of the small one."""
    for name, content in {**SMALL, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
