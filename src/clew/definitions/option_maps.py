"""Options that users write for formats, connectors and Spark. Those that look like secrets must be references.

Definitions are kept in version control, plans are kept with runs, and both are shown to many people. So an option that
holds a secret names it (`secret://env/NAME`), and only the step that needs the value looks it up.
"""

import re
from collections.abc import Iterator, Mapping

from clew.deferred import dataclass
from clew.definitions.datasource import has_password
from clew.definitions.nodes import MapNode, Node
from clew.definitions.shapes import ANY_SCALAR, SECRET, MapOf
from clew.definitions.yaml_scalars import Scalar
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.workspace import SECRET_IN_CLEAR

REFERENCE = "secret://"

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_SECRET_WORDS = frozenset(
    {
        *("password", "passwd", "passphrase", "pwd", "pass", "secret", "secrets", "token", "tokens", "credential"),
        *("credentials", "apikey", "accesskey", "secretkey", "sas", "jaas", "signature"),
    }
)
_KEYS_THAT_NAME_COLUMNS = frozenset(
    {"primary", "sort", "partition", "merge", "natural", "unique", "foreign", "record", "row", "cluster", "order"}
)
_NO_SECRETS = frozenset({"file", "path", "location", "provider", "type", "class", "name", "alias", "columns", "fields"})
"""After a word such as password or key: what follows says where or which, not the secret itself."""
_ASSIGNED = re.compile(r"(?i)\b(?:password|passwd|pwd|secret|token|access_?key|api_?key)\s*=\s*[^\s;&]")


def looks_like_a_secret(name: str) -> bool:
    """Whether an option of this name usually holds a secret."""
    words = [word.casefold() for word in _WORDS.findall(name)]
    if not words or words[-1] in _NO_SECRETS:
        return False
    if any(word in _SECRET_WORDS for word in words):
        return True
    return any(
        word in {"key", "keys"} and (index == 0 or words[index - 1] not in _KEYS_THAT_NAME_COLUMNS)
        for index, word in enumerate(words)
    )


@dataclass(frozen=True, slots=True)
class OptionMap(MapOf[Scalar]):
    """Options by name, none of which holds a secret in clear."""

    def read(self, node: Node) -> Mapping[str, Scalar]:
        """The options."""
        options = MapOf.read(self, node)
        assert isinstance(node, MapNode)  # noqa: S101 - anything else was refused
        problems = list[Diagnostic]()
        for name, value in options.items():
            problems += _problems(name, value, node.entries[name].value)
        if problems:
            raise UserError(*problems)
        return options


def _problems(name: str, value: Scalar, node: Node) -> Iterator[Diagnostic]:
    if isinstance(value, str) and value.startswith(REFERENCE):
        try:
            SECRET.read(node)
        except UserError as error:
            yield from error.diagnostics
        return
    is_set = value is not None and value != ""
    if (is_set and looks_like_a_secret(name)) or (isinstance(value, str) and _holds_a_secret(value)):
        yield SECRET_IN_CLEAR.at(node.span, option=name)


def _holds_a_secret(value: str) -> bool:
    return has_password(value) or _ASSIGNED.search(value) is not None


def options_of(what: str) -> OptionMap:
    """Options, called this in messages."""
    return OptionMap(ANY_SCALAR, what)
