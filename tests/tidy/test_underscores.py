"""A name with an underscore is for its module: no other module takes it from a class.

A subclass may not use the underscore names of a base of another module, nor give such a name a
meaning of its own: what subclasses fill in or lean on has a name without an underscore.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.tidy.sources import ROOT
from tests.tidy.test_circles import modules

SELF: Final = {"self", "cls"}
OF_OTHERS: Final = {"client._client"}
"""Names of the packages that we use, which a class of ours has too; ruff asks for their reasons."""
OF_TUPLES: Final = {"_asdict", "_fields", "_make", "_replace"}
"""Names that every NamedTuple has for all."""


class Module(NamedTuple):
    """A module of ours, taken apart.

    Attributes:
        classes: Its classes, by their names.
        names: By a name that it imports, the whole name of what that is.
    """

    tree: ast.Module
    classes: Mapping[str, ast.ClassDef]
    names: Mapping[str, str]


@cache
def taken_apart(root: Path) -> dict[str, Module]:
    """Return all modules of ours by their names, but for generated ones."""
    found = {}
    for name, path in modules(root).items():
        if not name.endswith("_pb2"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
            found[name] = Module(tree, classes, dict(imports(tree)))
    return found


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each name that a module imports, and the whole name of what that is."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    first = alias.name.partition(".")[0]
                    yield (alias.asname, alias.name) if alias.asname else (first, first)
            case ast.ImportFrom(module=module, names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name, f"{module}.{alias.name}"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in OF_TUPLES


def is_of_itself(value: ast.expr) -> bool:
    """Return whether an attribute is taken of `self`, `cls` or `super()`."""
    match value:
        case ast.Name(id=name):
            return name in SELF
        case ast.Call(func=ast.Name(id="super")):
            return True
    return False


def own_names(node: ast.ClassDef) -> set[str]:
    """Return the private names that a class gives a meaning: by `def`, in its body or on `self`."""
    found = {
        each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for each in node.body:
        if isinstance(each, ast.Assign | ast.AnnAssign):
            found |= {
                target.id
                for target in ast.walk(each)
                if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
            }
    found |= {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and is_of_itself(each.value)
    }
    return set(filter(is_private, found))


def used_names(node: ast.ClassDef) -> set[str]:
    """Return the private names that a class takes of itself."""
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and is_private(each.attr) and is_of_itself(each.value)
    }


def class_of(module: str, value: ast.expr, all_of: Mapping[str, Module]) -> tuple[str, str] | None:
    """Return module and name of the class of ours that an expression names."""
    whole = ast.unparse(value.value if isinstance(value, ast.Subscript) else value)
    if whole in all_of[module].classes:
        return module, whole
    first, _, rest = whole.partition(".")
    while (named := all_of[module].names.get(first)) is not None:
        whole = f"{named}.{rest}" if rest else named
        module, _, name = whole.rpartition(".")
        if module not in all_of:
            return None
        if name in all_of[module].classes:
            return module, name
        first, rest = name, ""  # it was imported there, too
    return None


def bases_of(
    module: str, node: ast.ClassDef, all_of: Mapping[str, Module]
) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield the bases of a class that are ours, and theirs, each with its module."""
    for base in node.bases:
        if (found := class_of(module, base, all_of)) is not None:
            where, name = found
            yield where, all_of[where].classes[name]
            yield from bases_of(where, all_of[where].classes[name], all_of)


def of_bases(all_of: Mapping[str, Module]) -> Iterator[str]:
    """Yield a line for each subclass that shares a private name with a base of another module."""
    for module, parts in all_of.items():
        for node in parts.classes.values():
            own, used = own_names(node), used_names(node)
            for where, base in bases_of(module, node, all_of):
                theirs = own_names(base)
                shared = (used & theirs) | (own & (theirs | used_names(base)))
                if where != module and shared:
                    names = ", ".join(sorted(shared))
                    yield f"{module}.{node.name} shares {names} with {where}.{base.name}"


def of_others(all_of: Mapping[str, Module]) -> Iterator[str]:
    """Yield a line for each private name that is taken of an object of another module's class."""
    own = {
        module: {
            name
            for node in ast.walk(parts.tree)
            if isinstance(node, ast.ClassDef)
            for name in own_names(node)
        }
        for module, parts in all_of.items()
    }
    of_any = set().union(*own.values())
    for module, parts in all_of.items():
        for node in ast.walk(parts.tree):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in of_any - own[module]
                and not is_of_itself(node.value)
                and ast.unparse(node) not in OF_OTHERS
            ):
                yield f"{module}:{node.lineno} {ast.unparse(node)}"


def test_no_subclass_shares_an_underscore_name_with_a_base_of_another_module() -> None:
    assert list(of_bases(taken_apart(ROOT))) == []


def test_no_module_takes_an_underscore_name_of_another_modules_class() -> None:
    assert list(of_others(taken_apart(ROOT))) == []


def test_each_way_to_reach_for_a_private_name_is_found(tmp_path: Path) -> None:
    room = tmp_path / "store"
    room.mkdir()
    (room / "base.py").write_text(
        "class Base:\n"
        "    def __init__(self): self._x = self._y = 1\n"
        "    def call(self): return self._hook()\n"
        "    def _hook(self): raise NotImplementedError\n"
    )
    (room / "way.py").write_text("from store.base import Base\n")
    (room / "one.py").write_text(
        "from store.way import Base\nclass One(Base):\n    def f(self): return self._x\n"
    )
    (room / "two.py").write_text(
        "import store.base\nclass Two(store.base.Base):\n    def _hook(self): return 1\n"
    )
    (room / "three.py").write_text(
        "from store import one\nclass Three(one.One):\n    def g(self): self._y = 2\n"
    )
    (room / "four.py").write_text("def f(some): return some._x\n")
    found = taken_apart(tmp_path)

    assert set(of_bases(found)) == {
        "store.one.One shares _x with store.base.Base",
        "store.two.Two shares _hook with store.base.Base",
        "store.three.Three shares _y with store.base.Base",
    }
    assert list(of_others(found)) == ["store.four:1 some._x"]
