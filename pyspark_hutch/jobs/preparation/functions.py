"""A user's function, named on a command line as `module:function` or `file.py:function`.

Workers load it by the same name, so that nothing of the user's has to be pickled. A file is loaded
under a name of its own, which no package has.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

from pyspark_hutch.jobs.errors import WrongArgument

_SHOWN_DIGITS: Final = 12
_PREFIX: Final = "_hutch_function_"


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """The place of a function.

    Attributes:
        module: Name of a module that can be imported on every worker; of a file, a name for it.
        name: Of the function in it.
        source: Contents of the file, to make the module from; None: it is imported.
        path: Of the file, for tracebacks.
    """

    module: str
    name: str
    source: str | None = None
    path: str = ""

    def load(self) -> Callable[..., Any]:
        """Return the function; the module is loaded once in a process.

        Raises:
            WrongArgument: There is no such module or function, or it fails while it is loaded.
        """
        what = self.path or self.module
        try:
            module = sys.modules.get(self.module) or self._module()
        except Exception as error:  # any mistake of the user's module
            raise WrongArgument(
                f"{what} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        found = getattr(module, self.name, None)
        if not callable(found):
            raise WrongArgument(f"{what} has no function {self.name!r}")
        function: Callable[..., Any] = found
        return function

    def _module(self) -> Any:  # noqa: ANN401  # a module of the user's
        if self.source is None:
            return import_module(self.module)
        spec = spec_from_file_location(self.module, self.path)
        assert spec is not None, "a path that ends in .py has a loader"
        module = module_from_spec(spec)
        sys.modules[self.module] = module  # where dataclasses and pickle look it up
        try:
            exec(compile(self.source, self.path, "exec"), module.__dict__)  # noqa: S102  # as asked
        except BaseException:
            del sys.modules[self.module]
            raise
        return module


def named_function(text: str) -> NamedFunction:
    """Return the function that `module:function` or `file.py:function` names.

    Raises:
        WrongArgument: The text has another form, or the file cannot be read.
    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise WrongArgument(f"{text!r} is no function: write module:function or file.py:function")
    if not place.endswith(".py"):
        return NamedFunction(place, name)
    path = Path(place).absolute()
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongArgument(f"cannot read {place}: {error}") from None
    digest = sha256(f"{path}\0{source}".encode()).hexdigest()[:_SHOWN_DIGITS]
    return NamedFunction(f"{_PREFIX}{digest}", name, source, str(path))
