"""The description of a part as JSON: what `part.json` holds, written by the engine and read by everybody else."""

from dataclasses import asdict
from typing import Literal, cast, get_args

from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import DAMAGED_TRACE, NEWER_TRACE_LAYOUT
from clew.trace.layout import CARRIED, LAYOUT_VERSION, IdBlock, Part, PartFile, PartKind, TracedStep


def part_to_json(part: Part) -> dict[str, object]:
    """The part as plain data for `json.dumps`."""
    data = asdict(part)
    data["details"] = None if part.details is None else dict(part.details)
    return data


def part_from_json(data: object, file: str) -> Part:
    """The part that `part_to_json` wrote. `file` is where it was read, for messages.

    Raises UserError where a newer Clew wrote it, and where it is no part.
    """
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > LAYOUT_VERSION:
        raise UserError(NEWER_TRACE_LAYOUT.anywhere(file=file, found=version, known=LAYOUT_VERSION))
    try:
        return _part(data)
    except (KeyError, TypeError, ValueError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(DAMAGED_TRACE.anywhere(file=file, problem=problem)) from None


def _part(data: object) -> Part:
    record = _record(data, Part)
    return Part(
        kind=cast("PartKind", _one_of(record["kind"], get_args(PartKind))),
        name=_text(record["name"]),
        files=tuple(_file(each) for each in _list(record["files"])),
        columns=tuple(_pair(each) for each in _list(record["columns"])),
        seq=_number(record["seq"]),
        steps=tuple(_step(each) for each in _list(record["steps"])),
        details=_details(record["details"]),
        version=_number(record["version"]),
    )


def _file(data: object) -> PartFile:
    record = _record(data, PartFile)
    ordinal = record["ordinal"]
    return PartFile(
        path=_text(record["path"]),
        rows=_number(record["rows"]),
        size=_number(record["size"]),
        sha256=_text(record["sha256"]),
        ordinal=None if ordinal is None else _number(ordinal),
        ids=_ids(record.get("ids")),
    )


def _ids(data: object) -> IdBlock | Literal["carried"] | None:
    if data is None or data == CARRIED:
        return CARRIED if data else None
    record = _record(data, IdBlock)
    return IdBlock(_number(record["node_id"]), _number(record["first_tick"]))


def _step(data: object) -> TracedStep:
    record = _record(data, TracedStep)
    columns = tuple(_text(each) for each in _list(record["columns"]))
    if _one_of(record["kind"], ("update", "delete")) == "update":
        return TracedStep(_number(record["seq"]), "update", columns)
    return TracedStep(_number(record["seq"]), "delete", columns)


def _pair(data: object) -> tuple[str, str]:
    name, type_ = _list(data)
    return _text(name), _text(type_)


def _details(data: object) -> dict[str, str | int | None] | None:
    if data is None:
        return None
    if not isinstance(data, dict):
        raise TypeError(f"expected details, found {_shown(data)}")
    for value in data.values():
        if value is not None and not isinstance(value, str | int):
            raise TypeError(f"expected a text or a number, found {_shown(value)}")
    return data


def _record(data: object, declared: type[Part | PartFile | TracedStep | IdBlock]) -> dict[str, object]:
    if not isinstance(data, dict):
        raise TypeError(f"expected {declared.__name__}, found {_shown(data)}")
    unknown = data.keys() - declared.__dataclass_fields__.keys()
    if unknown:
        raise ValueError(f"{declared.__name__} has no {', '.join(sorted(unknown))}")
    return data


def _one_of(data: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(data, str) or data not in allowed:
        raise ValueError(f"{_shown(data)} is none of {', '.join(allowed)}")
    return data


def _list(data: object) -> list[object]:
    if not isinstance(data, list | tuple):
        raise TypeError(f"expected a list, found {_shown(data)}")
    return list(data)


def _text(data: object) -> str:
    if not isinstance(data, str):
        raise TypeError(f"expected a text, found {_shown(data)}")
    return data


def _number(data: object) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or data < 0:
        raise TypeError(f"expected a number, found {_shown(data)}")
    return data


def _shown(data: object) -> str:
    return repr(data)[:80]
