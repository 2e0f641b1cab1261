"""What the compiler is told of a class and what the class is may not drift apart."""

import ast
import re
from pathlib import Path

import pytest

from gateway.kernels import HOT_OBJECTS

ROOT = Path(__file__).parents[2]
CLASS = re.compile(r"^cdef class (\w+)(?:\((\w+)\))?:\n((?:    .*\n|\n)*)", re.MULTILINE)


def assigned(node: ast.ClassDef) -> set[str]:
    """Attributes of `self` that a class assigns."""
    return {
        target.attr
        for statement in ast.walk(node)
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign)
        for part in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        for target in ast.walk(part)
        if isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    }


def declared_in(name: str) -> dict[str, tuple[str, set[str]]]:
    """Base and words of each class that a module's `.pxd` file declares."""
    types = (ROOT / name.replace(".", "/")).with_suffix(".pxd").read_text()
    found = CLASS.findall(types)
    return {each: (base, set(re.findall(r"\w+", body))) for each, base, body in found}


# A base is declared once; its name is no other class's.
ALL = {class_name: each for name in HOT_OBJECTS for class_name, each in declared_in(name).items()}


@pytest.mark.parametrize("name", HOT_OBJECTS)
def test_every_attribute_of_a_hot_object_is_declared(name: str) -> None:
    source = (ROOT / name.replace(".", "/")).with_suffix(".py")
    classes = {
        node.name: node
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    declared = declared_in(name)

    assert declared.keys() <= classes.keys()
    for class_name, (base, names) in declared.items():
        inherited = ALL[base][1] if base else set()
        assert assigned(classes[class_name]) <= names | inherited, class_name
