"""Compile the exported functions with numba, for WebAssembly instead of the processor.

numba's LLVM code is made for the processor, but is portable after a few changes. Then LLVM compiles it for WebAssembly,
and the linker `wasm-ld` makes a module of it.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import from_dtype, types

from tools.wasm.exports import EXPORTS, MEMORY, TUPLES, WORK
from tools.wasm.layout import layout_section

TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+bulk-memory,+sign-ext,+mutable-globals,+nontrapping-fptoint"
INTEGERS = {"seed": types.uint64}  # all other integers are int64, and 32 bits wide outside the module
NATIVE = {types.int64: "i64", types.uint64: "i64", types.float32: "float", types.none: "ptr"}

ERRORS = re.compile(r"NRT_|Py|numba_|log10$")
"""Functions that only format error messages. They are missing in the module, because `wrapper` stops at any error."""

EXP = """
declare double @llvm.rint.f64(double)
define double @exp(double %given) {{
  %under = fcmp olt double %given, -700.0
  %raised = select i1 %under, double -700.0, double %given
  %over = fcmp ogt double %raised, 700.0
  %x = select i1 %over, double 700.0, double %raised
  %scaled = fmul double %x, {inverse}
  %k = call double @llvm.rint.f64(double %scaled)
  %main = fmul double %k, {high}
  %rest = fmul double %k, {low}
  %reduced = fsub double %x, %main
  %r = fsub double %reduced, %rest
  {horner}
  %exponent = fptosi double %k to i64
  %biased = add i64 %exponent, 1023
  %shifted = shl i64 %biased, 52
  %power = bitcast i64 %shifted to double
  %result = fmul double %p0, %power
  ret double %result
}}
define float @expf(float %x) {{
  %wide = fpext float %x to double
  %value = call double @exp(double %wide)
  %result = fptrunc double %value to float
  ret float %result
}}
"""
"""exp(x) = 2^k * exp(r) with |r| <= ln(2) / 2. WebAssembly has no such instruction, and hosts differ."""

NO_REFERENCES = """
define internal void @NRT_incref(ptr %_) alwaysinline { ret void }
define internal void @NRT_decref(ptr %_) alwaysinline { ret void }
"""
"""The arrays are parts of the module's memory, so nothing counts references to them."""


def build(simd: bool) -> bytes:
    """Return the module, with or without SIMD instructions. Exit if the linker is missing."""
    if shutil.which("wasm-ld") is None:
        sys.exit(
            "python -m tools.wasm needs the linker wasm-ld of LLVM: apt-get install lld, or brew install lld"
        )
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE).create_target_machine(
        opt=3, features=FEATURES + ",+simd128" * simd
    )
    module = portable(target, "".join((memory(), *map(wrapper, EXPORTS))))
    for name in EXPORTS:
        module.link_in(portable(target, compiled(name).library.get_llvm_str()))
    public = {*EXPORTS, *MEMORY}
    for symbol in [*module.functions, *module.global_variables]:
        if not symbol.is_declaration and symbol.name not in public:
            symbol.linkage = "internal"
    parts = [optimized(target, module), optimized(target, portable(target, exp()))]
    needed = {function.name for function in module.functions if function.is_declaration} - {"exp", "expf"}
    if missing := sorted(name for name in needed if not re.match("llvm[.]", name) and not ERRORS.match(name)):
        sys.exit(f"the module needs functions that it does not contain: {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{i}.o") for i in range(len(parts))]
        for file, part in zip(files, parts, strict=True):
            file.write_bytes(part)
        linked = Path(folder, "wotd.wasm")
        options = [
            "--no-entry",
            "--gc-sections",
            "--strip-all",
            "--unresolved-symbols=ignore-all",
            "-z",
            "stack-size=262144",
        ]
        chosen = [f"--export={name}" for name in sorted(public)]
        subprocess.run(["wasm-ld", *options, *chosen, "-o", linked, *files], check=True)
        return linked.read_bytes() + layout_section()


def optimized(target: Any, module: Any) -> bytes:
    """Optimize a module and return its object file."""
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    return target.emit_object(module)  # type: ignore[no-any-return]


def portable(target: Any, text: str) -> Any:
    """Return LLVM code as a module for WebAssembly."""
    text = re.sub(r"^target (datalayout|triple) = .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r'"target-(cpu|features)"="[^"]*"', "", text)
    text = text.replace(" = common ", " = internal ")  # WebAssembly has no common symbols
    # Errors of numba contain paths of source files. Nothing reads them: `wrapper` stops at any error.
    text = re.sub(r'^(@\.const\.pickledata\S* = .*\]) c".*"', r"\1 zeroinitializer", text, flags=re.MULTILINE)
    text, found = re.subn(
        r"^define [^\n]* @NRT_(incref|decref)\(.*?^}", "", text, flags=re.MULTILINE | re.DOTALL
    )
    references = NO_REFERENCES * bool(found)
    module = llvm.parse_assembly(text + references)
    module.triple, module.data_layout = TRIPLE, str(target.target_data)
    return module


def exp() -> str:
    """Return LLVM code of `exp` and `expf`."""
    high = float(np.float32(math.log(2)))
    degree = 14
    horner = [f"%p{degree} = fadd double 0.0, {number(1 / math.factorial(degree))}"]
    for i in range(degree - 1, -1, -1):
        horner += [f"%m{i} = fmul double %p{i + 1}, %r"]
        horner += [f"%p{i} = fadd double %m{i}, {number(1 / math.factorial(i))}"]
    return EXP.format(
        inverse=number(1 / math.log(2)),
        high=number(high),
        low=number(math.log(2) - high),
        horner="\n  ".join(horner),
    )


def number(value: float) -> str:
    """Return a number in LLVM code."""
    return f"0x{np.float64(value).view(np.uint64):016X}"


# ------------------------------------------------------------------------------------------------------------ functions


def compiled(name: str) -> Any:
    """Compile the kernel of an export, and return numba's result."""
    kernel, arguments, _ = EXPORTS[name]
    signature = tuple(map(type_of, arguments.split()))
    kernel.compile(signature)
    return kernel.overloads[signature]


def type_of(argument: str) -> Any:
    """Return the numba type of an argument."""
    if argument in TUPLES:
        kind, fields = TUPLES[argument]
        arrays = [array_type(*field) for field in fields.values()]
        return types.NamedTuple(arrays, kind)  # type: ignore[no-untyped-call]
    return array_type(*MEMORY[argument]) if argument in MEMORY else INTEGERS.get(argument, types.int64)


def array_type(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Return the numba type of an array."""
    return types.Array(from_dtype(np.dtype(dtype)), len(shape), "C")


def memory() -> str:
    """Return LLVM code that reserves the memory of all arrays."""
    return "".join(
        f"@{name} = global [{np.dtype(dtype).itemsize * math.prod(shape)} x i8] zeroinitializer, align 64\n"
        for name, (dtype, shape) in {**MEMORY, **WORK}.items()
    )


def array(name: str, dtype: Any, shape: tuple[int, ...]) -> list[str]:
    """Return an array as numba's compiled functions take it: two owners, sizes, address, shape, strides."""
    strides = [np.dtype(dtype).itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    sizes = [math.prod(shape), np.dtype(dtype).itemsize]
    return [
        "ptr null", "ptr null", *(f"i64 {size}" for size in sizes), f"ptr @{name}",
        *(f"i64 {length}" for length in (*shape, *strides)),
    ]  # fmt: skip


def wrapper(name: str) -> str:
    """Return LLVM code of an exported function, which calls the compiled kernel with the memory of the module."""
    about = compiled(name).fndesc
    inner, outside = [], []
    lines = []
    for argument in EXPORTS[name].arguments.split():
        if argument in TUPLES:
            for field, kind in TUPLES[argument][1].items():
                inner += array(field, *kind)
        elif argument in MEMORY:
            inner += array(argument, *MEMORY[argument])
        elif argument in INTEGERS:
            outside.append(f"i64 %{argument}")
            inner.append(f"i64 %{argument}")
        else:
            outside.append(f"i32 %{argument}")
            lines.append(f"%{argument}.wide = sext i32 %{argument} to i64")
            inner.append(f"i64 %{argument}.wide")
    native = NATIVE[about.restype]
    given = {"i64": "i32", "float": "float", "ptr": "void"}[native]
    end = {
        "i64": "%narrow = trunc i64 %value to i32\n  ret i32 %narrow",
        "float": "ret float %value",
        "ptr": "ret void",
    }[native]
    body = "\n  ".join(lines)
    types_of = ", ".join(part.split()[0] for part in inner)
    return f"""
declare i32 @"{about.llvm_func_name}"(ptr, ptr, {types_of})
define {given} @{name}({", ".join(outside)}) {{
  %result = alloca {native}
  %error = alloca ptr
  {body}
  %status = call i32 @"{about.llvm_func_name}"(ptr %result, ptr %error, {", ".join(inner)})
  %good = icmp eq i32 %status, 0
  %none = icmp eq i32 %status, -2
  %fine = or i1 %good, %none
  br i1 %fine, label %return, label %fail
fail:
  call void @llvm.trap()
  unreachable
return:
  %value = load {native}, ptr %result
  {end}
}}
"""


def main() -> None:
    """Run the command line, which `python -m tools.wasm` calls with the right settings of numba."""
    parser = argparse.ArgumentParser(prog="python -m tools.wasm.build")
    parser.add_argument("file", type=Path)
    parser.add_argument("--scalar", action="store_true")
    options = parser.parse_args()
    options.file.write_bytes(build(simd=not options.scalar))


if __name__ == "__main__":
    main()
