"""Check that no kernel allocates records (part of `make check`).

In compiled code, a view of a row such as `games[0]` does not keep its array alive. The array is freed after the last
use of the name `games`, and the view then reads other data. So kernels may allocate only arrays of plain numbers. They
get records as arguments, e.g. the result of `wotd_env.core.state.scratch`.
"""

import ast
import sys
from collections.abc import Iterator

from tools.pages import ROOT

DECORATORS = {"kernel", "inlined"}
ALLOWED = {"empty": 1, "zeros": 1, "ones": 1, "full": 2}  # NumPy function -> position of its argument `dtype`
NUMBERS = {"float32", "float64", "bool_", *(f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64))}
FORBIDDEN = {  # functions that allocate an array with the dtype of their argument
    "array", "asarray", "ascontiguousarray", "copy", "empty_like", "zeros_like", "ones_like", "full_like", "repeat",
    "tile", "compress", "delete", "unique", "flip", "column_stack", "concatenate", "stack", "hstack", "vstack",
    "append", "roll", "sort", "take", "where", "flatten", "astype",
}  # fmt: skip


def faults(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the code of each call that may allocate records."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and any(map(_compiles, function.decorator_list)):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and _may_allocate(call):
                    yield call.lineno, ast.unparse(call)


def _compiles(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")) in DECORATORS


def _may_allocate(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name not in ALLOWED:
        return name in FORBIDDEN
    at = ALLOWED[name]
    given = [word.value for word in call.keywords if word.arg == "dtype"] + call.args[at : at + 1]
    return not all(isinstance(dtype, ast.Attribute) and dtype.attr in NUMBERS for dtype in given)


def main() -> int:
    """Check all sources and return the exit status."""
    found = [
        f"{file.relative_to(ROOT)}:{line}: a kernel must not allocate records: {code}"
        for folder in ("wotd_env", "agents")
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line, code in faults(file.read_text())
    ]
    print("\n".join(found) or "No kernel allocates records.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
