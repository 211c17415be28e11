"""Tiny workspaces, written as users write them.

A guillemet pair «like this» in a file marks the characters under which a caret is expected. The marks are taken out
before the file is written.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent

from clew.definitions import LoadedWorkspace, load_workspace
from clew.diagnostics import Diagnostic, Span, in_order
from clew.plan import CompiledWorkspace, Plan, compile_workspace

BASE = {
    "clew.yaml": """
        name: shop
        environments:
          dev:
            sinks:
              training: {type: training_log, path: .clew/training, max_ttl_days: 30}
              review: {type: capture_store, path: .clew/review, max_ttl_days: 7}
    """,
    "datasources/files.yaml": "{id: files, type: files, options: {root: data}}",
    "datasources/books.yaml": "{id: books, type: database, options: {url: 'postgresql://host/books'}}",
    "resolvers/tables.yaml": """
        id: tables
        is_default: true
        rules:
          - {name: all, strategy: {type: path, datasource_id: files, path: "{table}.csv", format: csv}}
    """,
    "resolvers/archive.yaml": """
        id: archive
        rules:
          - {name: all, strategy: {type: path, datasource_id: files, path: "old/{table}.csv", format: csv}}
    """,
    "datasets/orders.yaml": """
        id: orders
        main_table:
          name: orders
          temporal_mode: period
          columns:
            - {name: order_id, type: integer}
            - {name: customer_id, type: integer}
            - {name: region, type: string}
            - {name: status, type: string}
            - {name: amount, type: "decimal(12,2)"}
            - {name: ordered_on, type: date}
    """,
    "datasets/customers.yaml": """
        id: customers
        name: all customers
        version: 2
        main_table:
          name: clients
          columns:
            - {name: id, type: integer}
            - {name: tier, type: string}
            - {name: status, type: string}
            - {name: email, type: string, privacy: personal}
    """,
    "datasets/rates.yaml": """
        id: rates
        main_table:
          name: rates
          temporal_mode: bitemporal
          columns:
            - {name: region, type: string}
            - {name: amount, type: "decimal(12,2)"}
    """,
    "datasets/targets.yaml": """
        id: targets
        main_table:
          name: targets
          temporal_mode: period
          columns:
            - {name: region, type: string}
            - {name: amount, type: "decimal(10,1)"}
    """,
}

_MARK = re.compile("«([^»]*)»")


@dataclass(frozen=True)
class Checked:
    """A workspace that was written, loaded and compiled."""

    root: Path
    loaded: LoadedWorkspace
    compiled: CompiledWorkspace
    marks: tuple[Span, ...]

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return in_order([*self.loaded.diagnostics, *self.compiled.diagnostics])

    @property
    def plans(self) -> Mapping[str, Plan]:
        return self.compiled.plans

    @property
    def plan(self) -> Plan:
        """The plan of the project `p`, of a workspace without mistakes."""
        assert self.diagnostics == ()
        return self.plans["p"]

    @property
    def hints(self) -> list[str | None]:
        return [diagnostic.hint for diagnostic in self.diagnostics]

    def reports(self, *codes: str) -> None:
        """These codes at the marked places, in the order in which a reader meets them, and nothing else."""
        found = [(each.code, str(each.span), each.span.length if each.span else 0) for each in self.diagnostics]
        assert len(codes) == len(self.marks), "a code for each mark"
        expected = [(code, str(mark), mark.length) for code, mark in zip(codes, self.marks, strict=True)]
        assert found == expected, [each.message for each in self.diagnostics]


@dataclass
class TinyWorkspace:
    """A folder with the definitions above, to which a test adds its own."""

    root: Path
    marks: list[Span] = field(default_factory=list)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._unmarked(name, dedent(text).lstrip("\n")), encoding="utf-8")

    def _unmarked(self, name: str, text: str) -> str:
        lines = []
        for number, line in enumerate(text.split("\n"), start=1):
            rest = line
            while (mark := _MARK.search(rest)) is not None:
                self.marks.append(Span(name, number, mark.start() + 1, max(1, len(mark[1]))))
                rest = rest[: mark.start()] + mark[1] + rest[mark.end() :]
            lines.append(rest)
        return "\n".join(lines)

    def check(self) -> Checked:
        loaded = load_workspace(self.root)
        return Checked(self.root, loaded, compile_workspace(loaded.workspace), tuple(sorted(self.marks)))


def project_text(operations: str, *, selectors: str = "", more: str = "", input_dataset: str = "orders") -> str:
    """The file of the project `p` with these operations."""
    head = f"id: p\ninput_dataset: {input_dataset}\n{dedent(more)}"
    if selectors:
        head += "selectors:\n" + indent(dedent(selectors).strip("\n"), "  ") + "\n"
    listed = dedent(operations).strip("\n")
    return head + ("operations:\n" + indent(listed, "  ") + "\n" if listed else "operations: []\n")
