"""What is found by its value, and what is downloaded: only what a role sees as it is."""

import io

import openpyxl
import pytest

from tests.privacy.clinic import SALARY, Clinic, leaked


@pytest.mark.parametrize(
    ("role", "sees"), [("viewer", False), ("operator", False), ("auditor", False), ("admin", True)]
)
def test_a_personal_value_is_found_by_those_who_see_it(clinic: Clinic, role: str, sees: bool) -> None:
    answer = clinic.served.client(role).get("/api/v1/search", params={"q": f"{SALARY}.01"}).json()
    assert any("salary" in hit["columns"] for hit in answer["hits"]) is sees
    if not sees:
        assert [hit for hit in answer["hits"] if hit["kind"] == "row"] == []


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_files_have_what_pages_show(clinic: Clinic, role: str) -> None:
    hidden = ["secret"] if role == "admin" else ["personal", "secret"]
    address = f"/api/v1/runs/{clinic.care}/download/rows"
    for wanted in ("csv", "xlsx", "parquet"):
        answer = clinic.served.client(role).get(address, params={"format": wanted, "at": 40})
        assert answer.status_code == 200, answer.text
        text = answer.text
        if wanted == "xlsx":
            sheet = openpyxl.load_workbook(io.BytesIO(answer.content)).active
            assert sheet is not None
            text = "\n".join(str(row) for row in sheet.iter_rows(values_only=True))
        if wanted != "parquet":
            assert leaked(text, *hidden) == []
            assert len(text.splitlines()) > 3
    refused = clinic.served.client(role).get(address, params={"where": "pin > 1"})
    assert refused.status_code == 403
