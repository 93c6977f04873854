"""The C functions that the op table must cover: `signatures.txt`, and how it is read out of mlx-c's headers.

    PEER/bin/python tests/ops/signatures.py MLX_C_INCLUDE_DIR            compare signatures.txt with the headers
    PEER/bin/python tests/ops/signatures.py MLX_C_INCLUDE_DIR --write    write it anew (after an mlx-c upgrade)

MLX_C_INCLUDE_DIR is the folder that holds `mlx/c/ops.h`. A line is `name(kind, kind, ...)` without the `mlx_` prefix,
the result and the stream; a pointer and its length are one argument. Kinds: array, array?, arrays, ints, ints?, int, float,
bool, str, dtype, int?, float?, dtype?, norm ("?" = may be absent).
"""

import argparse
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADERS = ("ops", "random", "linalg", "fft", "fast")
SCALARS = {
    "int": "int",
    "size_t": "int",
    "uint64_t": "int",
    "float": "float",
    "double": "float",
    "bool": "bool",
    "mlx_dtype": "dtype",
    "mlx_fft_norm": "norm",
    "mlx_optional_int": "int?",
    "mlx_optional_float": "float?",
    "mlx_optional_dtype": "dtype?",
}


def kind_of(parameter):
    """The kind of one C parameter, or None for the result, the stream and the length of a pointer before it."""
    optional = "?" if "may be null" in parameter else ""
    words = re.sub(r"/\*.*?\*/", "", parameter).replace("*", " * ").split()
    name, kind = words[-1], [word for word in words[:-1] if word != "const"]
    if kind in (["mlx_array", "*"], ["mlx_vector_array", "*"], ["mlx_stream"]) or name.endswith("_num"):
        return None
    if kind == ["mlx_array"]:
        return "array" + optional
    if kind == ["mlx_vector_array"]:
        return "arrays"
    if kind == ["char", "*"]:
        return "str"
    if kind[-1] == "*":
        return "ints" + optional
    return SCALARS[kind[0]]


def read_headers(folder):
    """{name: [kind]} of every function that makes arrays out of arrays or numbers."""
    found = {}
    for header in HEADERS:
        text = (Path(folder) / "mlx" / "c" / f"{header}.h").read_text()
        for name, parameters in re.findall(r"\bint mlx_(\w+)\(([^;]*)\);", text):
            if re.search(r"mlx_fast_(cuda|metal)_kernel", parameters) or "kernel" in name:
                continue
            kinds = [kind_of(part) for part in re.split(r",(?![^/]*\*/)", " ".join(parameters.split()))]
            found[name] = [kind for kind in kinds if kind]
    return found


def read_list():
    """{name: [kind]} of signatures.txt."""
    found = {}
    for line in (HERE / "signatures.txt").read_text().splitlines():
        name, kinds = line.rstrip(")").split("(")
        found[name] = [kind for kind in kinds.split(", ") if kind]
    return found


def main():
    parser = argparse.ArgumentParser(description="Compare signatures.txt with mlx-c's headers.")
    parser.add_argument("include")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    headers = read_headers(args.include)
    if args.write:
        lines = [f"{name}({', '.join(kinds)})\n" for name, kinds in sorted(headers.items())]
        (HERE / "signatures.txt").write_text("".join(lines))
        return
    known = read_list()
    lines = []
    for name in sorted(headers.keys() | known.keys()):
        if headers.get(name) != known.get(name):
            lines.append(f"{name}: the headers have {headers.get(name)}, signatures.txt has {known.get(name)}")
    print("\n".join(lines) or f"signatures.txt matches the headers: {len(known)} functions")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
