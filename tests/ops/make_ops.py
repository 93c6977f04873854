"""The parity table of mlx-rs-core's operations: what Python MLX of the pinned version gives for small inputs.

    PEER/bin/python tests/ops/make_ops.py              write ops.json and ops.safetensors here
    PEER/bin/python tests/ops/make_ops.py --check      remake in memory, compare with the committed ones, exit 1
    PEER/bin/python tests/ops/make_ops.py --out DIR    write them elsewhere

PEER is a virtual environment made from vendor/peer.txt. Format: README.md beside this file.
"""

import argparse
import importlib.metadata
import json
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import numpy as np

import creation
import elementwise
import library
import linear
import reductions
import shaping
from table import Inputs, Table

HERE = Path(__file__).resolve().parent
SEED = 5
ROOMS = (elementwise, reductions, creation, shaping, linear, library)


def make():
    """The whole table; raises when a function of signatures.txt is neither covered nor explained."""
    table = Table()
    for offset, room in enumerate(ROOMS):
        room.add(table, Inputs(SEED + offset))
    valued = {row["op"] for row in table.rows if not row.get("error")}
    failing = {row["op"] for row in table.rows if row.get("error")}
    explained = table.uncovered.keys() | table.unsupported.keys()
    missing = sorted(table.signatures.keys() - valued - explained)
    if missing:
        raise SystemExit(f"no row and no reason for: {' '.join(missing)}")
    silent = sorted(table.signatures.keys() - failing - table.no_error.keys() - explained)
    if silent:
        raise SystemExit(f"neither an error row nor a reason in no_error for: {' '.join(silent)}")
    contradicted = sorted(failing & table.no_error.keys())
    if contradicted:
        raise SystemExit(f"listed as never failing, but it fails: {' '.join(contradicted)}")
    return table


def as_json(table):
    return {
        "made_by": "tests/ops/make_ops.py",
        "versions": {name: importlib.metadata.version(name) for name in ("mlx", "mlx-cpu")},
        "seed": SEED,
        "no_error": dict(sorted(table.no_error.items())),
        "unsupported": dict(sorted(table.unsupported.items())),
        "uncovered": dict(sorted(table.uncovered.items())),
        "rows": table.rows,
    }


def write(table, out):
    """`ops.json` with a row per line, and `ops.safetensors`."""
    out.mkdir(parents=True, exist_ok=True)
    value = as_json(table)
    rows = value.pop("rows")
    head = json.dumps(value, indent=1)[:-2]
    body = ",\n".join("  " + json.dumps(row) for row in rows)
    (out / "ops.json").write_text(f'{head},\n "rows": [\n{body}\n ]\n}}\n')
    mx.save_safetensors(str(out / "ops.safetensors"), table.arrays)


def _same(row, want, got):
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"committed {want.dtype} {want.shape}, remade {got.dtype} {got.shape}"
    wide = np.complex128 if want.dtype == mx.complex64 else np.float64
    a, b = (np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x).astype(wide) for x in (want, got))
    if np.allclose(b, a, rtol=row["rtol"], atol=row["atol"], equal_nan=True):
        return None
    return f"committed {a.tolist()}, remade {b.tolist()}"


def check(folder):
    """Differences between the committed table and the one in `folder`."""
    old, new = (json.loads((where / "ops.json").read_text()) for where in (HERE, folder))
    lines = [f"ops.json {key}: differs" for key in old if key != "rows" and old[key] != new.get(key)]
    rows = [{(row["op"], row["case"]): row for row in value["rows"]} for value in (old, new)]
    arrays = [mx.load(str(where / "ops.safetensors")) for where in (HERE, folder)]
    for name in sorted(rows[0].keys() | rows[1].keys()):
        a, b = rows[0].get(name), rows[1].get(name)
        if a != b:
            lines.append(f"{name[0]} {name[1]}: committed {json.dumps(a)}, remade {json.dumps(b)}")
            continue
        for key in a.get("outputs", []):
            difference = _same(a, arrays[0][key], arrays[1][key])
            if difference:
                lines.append(f"{key}: {difference}")
    for key in sorted(arrays[0].keys() | arrays[1].keys()):
        if not key.startswith("in."):
            continue
        if key not in arrays[0] or key not in arrays[1]:
            lines.append(f"{key}: an input that only one of the tables has")
        else:
            difference = _same({"rtol": 0.0, "atol": 0.0}, arrays[0][key], arrays[1][key])
            lines += [f"{key}: {difference}"] if difference else []
    return lines


def main():
    parser = argparse.ArgumentParser(description="Make or check the parity table of operations.")
    parser.add_argument("--check", action="store_true", help="compare with the committed files, write nothing")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to (default: this one)")
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)
    table = make()
    if not args.check:
        write(table, args.out)
        values = sum(not row.get("error") for row in table.rows)
        ops = len({row["op"] for row in table.rows})
        print(f"{ops} of {len(table.signatures)} functions, {values} value rows, {len(table.rows) - values} error rows")
        return
    with tempfile.TemporaryDirectory() as folder:
        write(table, Path(folder))
        lines = check(Path(folder))
    if lines:
        print("\n".join(lines), file=sys.stderr)
        sys.exit(1)
    print("the table is what Python MLX gives")


if __name__ == "__main__":
    main()
