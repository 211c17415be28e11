"""Rows in quarantine through whole runs: commands, reconciliation, why-not, corrections, and what a role may see."""

import csv
import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from tests.server.server_fixtures import serving

FILES = {
    "clew.yaml": """
name: claims
environments:
  dev: {mode: dev}
""",
    "calendars/c.yaml": "{id: c, generate: {first_year: 2026, last_year: 2026}}",
    "datasources/files.yaml": "{id: files, type: files, options: {root: data}}",
    "datasets/claims.yaml": """
id: claims
natural_key: [id]
main_table:
  name: claims
  columns:
    - {name: id, type: integer, nullable: false}
    - {name: born, type: date, privacy: personal}
    - {name: paid, type: "decimal(12,2)"}
""",
    "resolvers/r.yaml": """
id: r
is_default: true
rules:
  - name: deliveries
    strategy:
      type: path
      datasource_id: files
      path: claims.csv
      columns: {born: {format: dd.MM.yyyy}, paid: {decimal_mark: ","}}
      bad_rows: quarantine
      corrections: fixed.csv
""",
    "projects/p.yaml": """
id: p
input_dataset: claims
operations:
  - {seq: 1, name: Write, type: output, arguments: {destination: {datasource_id: files, path: out.csv}}}
""",
    "data/claims.csv": 'id,born,paid\n1,01.02.2000,"5,50"\n2,2000-01-01,"6,00"\n3,01.01.2001,six\n4,nonsense\n',
}


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Path:
    del spark
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_rows_in_quarantine_are_found_counted_explained_and_corrected(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace(folder) as workspace:
        run = workspace.run("p", "2026-01").raise_if_failed()
        kept = run.quarantine()
        assert [(row.line, [(each.column, each.value) for each in row.problems]) for row in kept] == [
            (3, [("born", "2000-01-01")]),
            (4, [("paid", "six")]),
            (5, [(None, None)]),
        ]
        assert kept[2].record == "4,nonsense"
        [rows, *_] = run.reconcile().waterfalls
        assert rows.ties
        assert [(line.what, line.rows) for line in rows.lines] == [
            ("loaded", 1),
            ("unfit", 3),
            ("quarantined", 3),
            ("written", 1),
        ]
        told = json.dumps(run.why_not("id = 3").to_json())
        assert "quarantined at load: paid: it is not a decimal(12,2)" in told
        assert run.verification(deep=True).is_intact
        exported = list(csv.DictReader(run.quarantine_csv().splitlines()))
        assert [(row["_source_line"], row["id"], row["born"], row["paid"]) for row in exported] == [
            ("3", "2", "2000-01-01", "6,00"),
            ("4", "3", "01.01.2001", "six"),
            ("5", "", "", ""),
        ]
        (folder / "data/fixed.csv").write_text(
            '_source_file,_source_line,id,born,paid\nclaims.csv,4,3,01.01.2001,"6,10"\n'
        )
        again = workspace.run("p", "2026-01").raise_if_failed()
        found = again.open_trace().search("id = 3").rows
        assert len(found) == 1
        assert "corrects claims.csv, line 4" in json.dumps(again.explain(found[0].row_id, "paid").to_json())
        assert [row.correction for row in again.quarantine()] == [None, "fixed.csv, line 2", None]
    with serving(folder, monkeypatch, run_id=again.id) as served:
        html = {"Accept": "text/html"}
        page = served.browser().get(f"/runs/{again.id}/quarantine", headers=html).text
        assert "3 rows of files" in page
        assert re.search(r"claims\.csv, line 4</th>.*six.*corrected in fixed\.csv, line 2", page, re.DOTALL)
        assert f"/runs/{again.id}/quarantine" in served.browser().get(f"/runs/{again.id}", headers=html).text
        answer = served.client("admin").get(f"/api/v1/runs/{again.id}/quarantine").json()
        assert [row["line"] for row in answer["rows"]] == [3, 4, 5]
    settings = folder / "clew.yaml"
    settings.write_text(settings.read_text().replace("{mode: dev}", "{mode: dev, local_role: operator}"))
    with Workspace(folder) as office:
        masked = office.find_run(run.id).quarantine()
        assert masked[0].problems[0].value != "2000-01-01"
        assert "nonsense" not in str(masked)
        with pytest.raises(UserError, match="born"):
            office.find_run(run.id).quarantine_csv()
