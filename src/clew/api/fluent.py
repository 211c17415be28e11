"""Projects written in Python, operation by operation. The same content gives the same plan as a project file."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from clew.deferred import dataclass
from clew.definitions import Project, project_from_data

_STEP = 10
"""The distance between the seqs of operations that do not set one."""

OperationData = Mapping[str, object]


def join(alias: str, dataset: str, *, on: str, version: int | None = None) -> OperationData:
    """A dataset that an update joins, under an alias."""
    return {"alias": alias, "dataset_id": dataset, "dataset_version": version, "on": on}


def project(
    project_id: str | None = None,
    *,
    input: str | OperationData,  # noqa: A002 - the natural name
    name: str | None = None,
    description: str | None = None,
    version: int | None = None,
    selectors: Mapping[str, str] | None = None,
    resolver_overrides: Mapping[str, str] | None = None,
    parameters: Mapping[str, OperationData] | None = None,
    controls: Sequence[OperationData] | None = None,
) -> "ProjectBuilder":
    """A project on one input dataset, without operations yet. Use named selectors as {{NAME}}.

    Parameters and control totals have the same keys as in project files.
    """
    return ProjectBuilder(
        {
            "id": project_id,
            "name": name,
            "description": description,
            "version": version,
            "input_dataset": input,
            "selectors": selectors,
            "resolver_overrides": resolver_overrides,
            "parameters": parameters,
            "controls": controls,
        }
    )


@dataclass(frozen=True, slots=True)
class ProjectBuilder:
    """An unfinished project. Every method returns a new builder and leaves this one unchanged."""

    head: OperationData
    operations: tuple[OperationData, ...] = field(default=())

    def update(
        self,
        name: str,
        assignments: Mapping[str, str] | None = None,
        *,
        where: str | None = None,
        joins: Sequence[OperationData] = (),
        rename: Mapping[str, str] | None = None,
        drop: Sequence[str] | None = None,
        seq: int | None = None,
        description: str | None = None,
    ) -> "ProjectBuilder":
        """Set columns to expressions on the rows that `where` selects; rename and drop columns of all rows."""
        arguments = {
            "joins": list(joins) or None,
            "assignments": _columns(assignments) if assignments else None,
            "rename": dict(rename) if rename else None,
            "drop": list(drop) if drop else None,
        }
        return self._with("update", name, arguments, where=where, seq=seq, description=description)

    def aggregate(
        self,
        name: str,
        aggregations: Mapping[str, str],
        *,
        group_by: Sequence[str] = (),
        having: str | None = None,
        where: str | None = None,
        seq: int | None = None,
        description: str | None = None,
    ) -> "ProjectBuilder":
        """Add one summary row for each group, of those that fulfil `having`, of the rows that `where` selects."""
        arguments = {"group_by": list(group_by), "aggregations": _columns(aggregations), "having": having}
        return self._with("aggregate", name, arguments, where=where, seq=seq, description=description)

    def append(
        self,
        name: str,
        source: str | OperationData,
        *,
        source_where: str | None = None,
        columns: Mapping[str, str] | None = None,
        group_by: Sequence[str] | None = None,
        aggregations: Mapping[str, str] | None = None,
        seq: int | None = None,
        description: str | None = None,
    ) -> "ProjectBuilder":
        """Add rows of another dataset, or summaries of them if there are aggregations.

        `columns` says by expressions over the source which columns the new rows fill; by default all of its columns.
        """
        aggregation = (
            {"group_by": list(group_by or ()), "aggregations": _columns(aggregations)}
            if aggregations is not None
            else None
        )
        arguments = {
            "source": {"dataset_id": source} if isinstance(source, str) else source,
            "source_selector": source_where,
            "columns": None if columns is None else dict(columns),
            "aggregation": aggregation,
        }
        return self._with("append", name, arguments, where=None, seq=seq, description=description)

    def delete(
        self,
        name: str,
        *,
        where: str | None = None,
        keep: Literal["first", "last"] | None = None,
        keys: Sequence[str] | None = None,
        order: Sequence[str] | None = None,
        seq: int | None = None,
        description: str | None = None,
    ) -> "ProjectBuilder":
        """Mark the rows that `where` selects as deleted; with `keep`, all but one of those with the same `keys`."""
        if where is None and keep is None:
            raise TypeError("delete needs where, or keep and keys")
        listed = {"keys": keys and list(keys), "order": order and list(order)}
        arguments = None if keep is None and not any(listed.values()) else {"keep": keep, **listed}
        return self._with("delete", name, arguments, where=where, seq=seq, description=description)

    def output(
        self,
        name: str,
        *,
        path: str | None = None,
        table: str | None = None,
        datasource: str | None = None,
        format: str | None = None,  # noqa: A002 - the name in project files
        options: OperationData | None = None,
        mode: Literal["overwrite", "append", "replace_period", "upsert"] | None = None,
        upsert_by: Sequence[str] | None = None,
        new_columns: Literal["refuse", "add"] | None = None,
        columns: Sequence[str] | None = None,
        include_deleted: bool | None = None,
        register_as: str | None = None,
        sort: Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        file_per: str | None = None,
        where: str | None = None,
        seq: int | None = None,
        description: str | None = None,
    ) -> "ProjectBuilder":
        """Write the rows that `where` selects to a path or table of a datasource, or without one to a location."""
        place: OperationData = {"path": path, "table": table, "format": format, "options": options}
        destination = {"location": place} if datasource is None else {"datasource_id": datasource, **place}
        arguments = {
            "destination": destination,
            "mode": mode,
            "upsert_by": list(upsert_by) if upsert_by is not None else None,
            "new_columns": new_columns,
            "columns": list(columns) if columns is not None else None,
            "include_deleted": include_deleted,
            "register_as_dataset": register_as,
            "sort": list(sort) if sort is not None else None,
            "partition_by": list(partition_by) if partition_by is not None else None,
            "file_per": file_per,
        }
        return self._with("output", name, arguments, where=where, seq=seq, description=description)

    def use(
        self,
        fragment: str,
        *,
        alias: str | None = None,
        arguments: Mapping[str, str] | None = None,
        seq: int | None = None,
    ) -> "ProjectBuilder":
        """Insert the operations of a fragment, with an expression for each of its arguments."""
        given = dict(arguments) if arguments else None
        operation = {"seq": self._next(seq), "use": {"fragment": fragment, "as": alias, "arguments": given}}
        return replace(self, operations=(*self.operations, operation))

    def assign(self, label: str) -> "ProjectBuilder":
        """Make the point after the last operation a breakpoint."""
        return self._amended(assign=label)

    def after_request(self, *jobs: OperationData) -> "ProjectBuilder":
        """Add jobs on the rows after the last operation, with the same keys as in project files."""
        return self._amended(after_request=list(jobs))

    def to_data(self) -> dict[str, object]:
        """The project with the keys of a project file."""
        return {**self.head, "operations": list(self.operations)}

    def build(self) -> Project:
        """The project, checked like a file. Raises UserError with all errors."""
        return project_from_data(self.to_data(), f"<project {self.head.get('id') or 'without a name'}>")

    def _with(
        self,
        type_: str,
        name: str,
        arguments: OperationData | None,
        *,
        where: str | None,
        seq: int | None,
        description: str | None,
    ) -> "ProjectBuilder":
        operation = {
            "seq": self._next(seq),
            "name": name,
            "description": description,
            "type": type_,
            "selector": where,
            "arguments": arguments,
        }
        return replace(self, operations=(*self.operations, operation))

    def _next(self, seq: int | None) -> int:
        taken = [number for operation in self.operations if isinstance(number := operation["seq"], int)]
        return seq if seq is not None else max(taken, default=0) + _STEP

    def _amended(self, **changes: object) -> "ProjectBuilder":
        if not self.operations:
            raise ValueError("add an operation first")
        *before, last = self.operations
        return replace(self, operations=(*before, {**last, **changes}))


def _columns(expressions: Mapping[str, str]) -> list[OperationData]:
    return [{"column": column, "expression": expression} for column, expression in expressions.items()]
