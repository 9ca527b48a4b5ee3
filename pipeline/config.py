"""One section of params.yaml becomes one frozen, strict model.

The models stand beside their owners (``pipeline/predict/config.py``, …); this module reads the
file, applies ``-S section.key=value`` and turns every mistake into a ``ConfigError``: an unknown
key names the close matches, a wrong type names key, expectation and value.

The file is read as YAML 1.2, as DVC reads it: a language code ``no`` stays the string ``no`` and
``1e-3`` is a number.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import msgspec.inspect
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline.errors import ConfigError, did_you_mean

SECTIONS = ("fetch", "prepare", "predict", "score", "report")

_LISTS = (msgspec.inspect.ListType, msgspec.inspect.VarTupleType)

Section = TypeVar("Section", bound=msgspec.Struct)


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the section models (each says ``frozen=True`` again, for the type checker)."""


def load_section(
    path: Path, section: str, model: type[Section], overrides: Iterable[str] = ()
) -> Section:
    """Read ``section`` of the params file at ``path`` as ``model``.

    Args:
        path: the params file.
        section: one of ``SECTIONS``; a missing section means all defaults.
        model: the section's ``Config``.
        overrides: ``section.key=value`` or ``section.key.sub=value``; the value is YAML.

    Raises:
        ConfigError: no such file, not YAML, an unknown section or key, or a value of a wrong type.
    """
    params = _read(path)
    for name in params:
        if name not in SECTIONS:
            raise ConfigError(
                f"{path}: unknown section {_shown(name)}{did_you_mean(str(name), SECTIONS)}"
            )
    values = params.get(section)
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: {section} must be a mapping of keys, got {_shown(values)}")
    # What the file says is checked before -S, so that a message names where the mistake stands.
    parse_section(values, section, model, where=str(path))
    for override in overrides:
        _apply(values, section, override)
        parse_section(values, section, model, where=f"-S {override}")
    return parse_section(values, section, model, where=str(path))


def default_section(section: str, model: type[Section], overrides: Iterable[str] = ()) -> Section:
    """The defaults of ``section`` with ``overrides``: what there is without a params file."""
    values: dict[str, Any] = {}
    for override in overrides:
        _apply(values, section, override)
        parse_section(values, section, model, where=f"-S {override}")
    return parse_section(values, section, model)


def parse_section(
    values: Mapping[str, Any], section: str, model: type[Section], where: str = ""
) -> Section:
    """Check ``values`` and turn them into ``model``; ``where`` they stand begins each message.

    Raises:
        ConfigError: see ``load_section``.
    """
    prefix = f"{where}: " if where else ""
    _reject_unknown(values, section, model, prefix)
    try:
        return msgspec.convert(values, model, strict=True)
    except msgspec.ValidationError as error:
        message, _, pointer = str(error).replace("at `key` in `$", "at `$").partition(" - at `$")
        key = section + pointer.rstrip("`")
        if message.startswith("Invalid enum value"):
            choices = ", ".join(_choices(msgspec.inspect.type_info(model), pointer.rstrip("`")))
            message = f"Expected {choices}"
        if ", got" not in message:
            message += f", got {_shown(_at(values, pointer.rstrip('`')))}"
        message = message.replace("`", "").replace(" | ", " or ")
        message = message.replace("Object", "mapping").replace("object", "mapping")
        message = message.replace("array", "list")
        if "expected str" in message.lower() and message.endswith(("got mapping", "got list")):
            message += "; in YAML a text that begins with { or [ wants quotes around it"
        raise ConfigError(f"{prefix}{key}: {message[0].lower()}{message[1:]}") from None


def _at(values: Any, pointer: str) -> Any:
    """The value at a msgspec pointer such as ``.metrics[0]``; as far as it can be followed."""
    for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", pointer):
        try:
            values = values[name] if name else values[int(index)]
        except (KeyError, IndexError, TypeError):
            break
    return values


def _choices(kind: msgspec.inspect.Type, pointer: str) -> list[str]:
    """The texts that are allowed at a msgspec pointer: those of all types that may stand there."""
    kinds = [kind]
    for name in re.findall(r"\.([^.\[\]]+)|\[[^\]]*\]", pointer):
        kinds = [inner for outer in map(_parts, kinds) for inner in outer.get(name, [])]
    return [text for one in kinds for text in _literals(one)]


def _parts(kind: msgspec.inspect.Type) -> dict[str, list[msgspec.inspect.Type]]:
    """Types by the name of their field; of the elements of lists and maps by none."""
    if isinstance(kind, msgspec.inspect.UnionType):
        found: dict[str, list[msgspec.inspect.Type]] = {}
        for part in map(_parts, kind.types):
            for name, inner in part.items():
                found.setdefault(name, []).extend(inner)
        return found
    if isinstance(kind, msgspec.inspect.StructType):
        return {field.name: [field.type] for field in kind.fields}
    if isinstance(kind, msgspec.inspect.DictType):
        return {"": [kind.value_type]}
    return {"": [kind.item_type]} if isinstance(kind, _LISTS) else {}


def _literals(kind: msgspec.inspect.Type) -> list[str]:
    if isinstance(kind, msgspec.inspect.UnionType):
        return [text for one in kind.types for text in _literals(one)]
    return list(map(str, kind.values)) if isinstance(kind, msgspec.inspect.LiteralType) else []


def _reject_unknown(
    values: Mapping[str, Any], section: str, model: type[msgspec.Struct], prefix: str
) -> None:
    fields = {field.name: field.type for field in msgspec.structs.fields(model)}
    for key, value in values.items():
        if key not in fields:
            hint = did_you_mean(str(key), fields)
            raise ConfigError(f"{prefix}unknown key '{section}.{key}'{hint}")
        nested = fields[key]
        if isinstance(nested, type) and issubclass(nested, msgspec.Struct) and value is not None:
            if not isinstance(value, Mapping):
                raise ConfigError(f"{prefix}{section}.{key}: expected a mapping of keys")
            _reject_unknown(value, f"{section}.{key}", nested, prefix)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such params file; run in the project's folder or pass --params FILE"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    params = parse_yaml(text, str(path))
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise ConfigError(
            f"{path}: expected sections ({', '.join(SECTIONS)}), got {_shown(params)}"
        )
    return params


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML 1.2; a duplicate key or a syntax error is a ``ConfigError`` naming the place."""
    try:
        return YAML(typ="safe", pure=True).load(io.StringIO(text))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error)
        message = f"{where}:{line} is not valid YAML: {problem.splitlines()[0]}"
        if "unhashable key" in problem:
            message += "; a text with braces wants quotes around it"
        raise ConfigError(message) from None
    except (ValueError, OverflowError, RecursionError) as error:  # from a scalar, or its depth
        raise ConfigError(f"{where}: a value cannot be read: {error}") from None


def _apply(values: dict[str, Any], section: str, override: str) -> None:
    match = re.fullmatch(r"([^=.\s]+)\.([^=\s]+)=(.*)", override, flags=re.DOTALL)
    if match is None:
        raise ConfigError(f"-S {override}: expected section.key=value")
    named, path, value = match.groups()
    if named != section:
        raise ConfigError(f"-S {override}: this command reads the section '{section}' only")
    *parents, last = path.split(".")
    target = values
    for parent in parents:
        inner = target.get(parent)
        if inner is None:
            inner = target[parent] = {}
        if not isinstance(inner, dict):
            raise ConfigError(f"-S {override}: {section}.{parent} holds a value, not keys")
        target = inner
    target[last] = parse_yaml(value, f"-S {override}")


def _shown(value: Any, limit: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
