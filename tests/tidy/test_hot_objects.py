"""What the compiler is told of a class and what the class is may not drift apart."""

import ast
import re
from pathlib import Path

import pytest

from gateway.kernels import HOT_OBJECTS

ROOT = Path(__file__).parents[2]
CLASS = re.compile(r"^cdef class (\w+).*?:\n((?:    .*\n|\n)*)", re.MULTILINE)


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


@pytest.mark.parametrize("name", HOT_OBJECTS)
def test_every_attribute_of_a_hot_object_is_declared(name: str) -> None:
    source = ROOT / (name.replace(".", "/") + ".py")
    declared = {
        class_name: set(re.findall(r"\w+", body))
        for class_name, body in CLASS.findall(source.with_suffix(".pxd").read_text())
    }
    classes = {
        node.name: node
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.ClassDef)
    }

    assert declared.keys() <= classes.keys()
    for class_name, names in declared.items():
        assert assigned(classes[class_name]) <= names, class_name
