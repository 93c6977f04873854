"""Makes the goldens of this folder with mlx-lm's own model code, loss and trainer; MLX on the CPU, float32.

    PEER/bin/python tests/golden/make_goldens.py              write them here
    PEER/bin/python tests/golden/make_goldens.py --check      remake in memory, compare with the committed ones, exit 1
    PEER/bin/python tests/golden/make_goldens.py --out DIR    write them elsewhere

PEER is a virtual environment made from vendor/peer.txt. Formats: README.md beside this file.
"""

import argparse
import importlib.metadata
import json
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import numpy as np

import llama_case
import orpo_case
import orpo_reference
import tiny_llama

HERE = Path(__file__).resolve().parent
ORPO_CASES = {"orpo_tied": "llama_tied", "orpo_4bit": "llama_4bit"}
ORPO_LORA = {"num_layers": 2, "keys": None}
REFERENCE_SEED = 4007
ORPO_LAMBDA = 0.1

# Group of tensors (the text before the first dot of a name) -> (rtol, atol). A value passes when
# |got - want| <= atol + rtol * |want|. The maker asserts that rounding alone stays below half of each.
TOLERANCES = {
    "logits": (2e-6, 2e-5),
    "token_logprobs": (2e-6, 2e-5),
    "loss": (2e-6, 2e-6),
    "grads": (1e-5, 5e-6),
    "losses": (1e-5, 0.0),
    # The first steps divide a gradient by its own size, so a gradient near zero turns rounding into a visible step.
    "final": (1e-5, 5e-5),
    "exact": (0.0, 0.0),
    # The reference is float64; what is compared is a float32 implementation.
    "reference": (1e-5, 1e-6),
}


def kind_of(name):
    """The tolerance class of a tensor."""
    group = name.split(".", 1)[0]
    if group.startswith("lora_"):
        return "exact"
    for word in ("losses", "final", "grads", "logits", "token_logprobs"):
        if word in group:
            return word
    if "loss" in group or group.endswith("nll") or group in ("lw", "lr", "log_odds"):
        return "loss"
    return "exact"


def versions():
    return {name: importlib.metadata.version(name) for name in ("mlx", "mlx-cpu", "mlx-lm", "numpy")}


def tolerance_table(made, double):
    """Per group: rtol, atol and the largest difference to the float64 run; raises if rounding uses up a tolerance."""
    table = {}
    for name, value in made.items():
        group = name.split(".", 1)[0]
        rtol, atol = TOLERANCES[kind_of(name)]
        want, exact = np.array(value, np.float64), np.array(double[name], np.float64)
        error = float(np.abs(want - exact).max())
        if (np.abs(want - exact) > (atol + rtol * np.abs(want)) / 2).any() and kind_of(name) != "exact":
            raise SystemExit(f"{name}: float32 and float64 differ by {error:.2e}, too much for rtol {rtol} atol {atol}")
        row = table.setdefault(group, {"rtol": rtol, "atol": atol, "float64_error": 0.0})
        row["float64_error"] = max(row["float64_error"], float(f"{error:.1e}"))
    return table


def check_draws(made, order):
    """Raises unless the a matrices are the draws that `lora_init.draws` describes."""
    state = mx.random.key(llama_case.LORA_SEED)
    for module in order:
        value = made[f"lora_init.{module}.lora_a"]
        bound = 1 / value.shape[0] ** 0.5
        for _ in range(2):
            state, key = mx.random.split(state)
        again = mx.random.uniform(-bound, bound, value.shape, key=key)
        if not mx.array_equal(again, value):
            raise SystemExit(f"{module}: the LoRA draw is not the one expected")


def write_tensors(path, tensors):
    mx.save_safetensors(str(path), {name: mx.contiguous(value) for name, value in tensors.items()})


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1, sort_keys=False) + "\n")


def meta_of(name, lora, table):
    return {
        "name": name,
        "made_by": "tests/golden/make_goldens.py",
        "how": "mlx-lm's llama, linear_to_lora_layers and train; float32 on the CPU, mx.compile disabled",
        "versions": versions(),
        "seeds": {
            "lora": llama_case.LORA_SEED,
            "start": llama_case.START_SEED,
            "data": llama_case.DATA_SEED,
        },
        "lora": {**tiny_llama.LORA, **lora},
        "optimizer": {"name": "adamw", **llama_case.OPTIMIZER, "steps": llama_case.STEPS},
        "tolerances": table,
    }


def make_llama(out, name):
    folder = out / name
    lora = tiny_llama.CASES[name][2]
    tiny_llama.write_checkpoint(folder, name)
    made = llama_case.tensors(folder, lora)
    double = llama_case.tensors(folder, lora, double=True)
    order = llama_case.draws(folder, lora)
    check_draws(made, order)
    for loss in ("loss", "loss_whole"):
        if abs(made[loss].item() - made[f"{loss}_mlx_lm"].item()) < 1e-3:
            raise SystemExit(f"{name}: counting the pad token does not show in {loss}")
    meta = meta_of(name, lora, tolerance_table(made, double))
    meta["seeds"]["weights"] = tiny_llama.CASES[name][1]
    meta["chunks"] = llama_case.CHUNKS
    meta["lora_init"] = {
        "rule": "key(seed) is split once per draw, (state, key); each module takes two draws, the second is a ~ "
        "U(-1/sqrt(in), 1/sqrt(in)) of shape [in, rank]; b is zero",
        "draws": order,
    }
    write_tensors(folder / "golden.safetensors", made)
    write_json(folder / "meta.json", meta)


def make_orpo(out, name):
    folder, model = out / name, out / ORPO_CASES[name]
    folder.mkdir(parents=True, exist_ok=True)
    made = orpo_case.tensors(model, ORPO_LORA)
    double = orpo_case.tensors(model, ORPO_LORA, double=True)
    orpo_case.check_against_reference(model, ORPO_LORA, made)
    meta = meta_of(name, ORPO_LORA, tolerance_table(made, double))
    meta["seeds"]["data"] = orpo_case.DATA_SEED
    meta["model"] = ORPO_CASES[name]
    meta["lambda"] = orpo_case.LAMBDA
    meta["optimizer"]["bias_correction"] = True
    write_tensors(folder / "golden.safetensors", made)
    write_json(folder / "meta.json", meta)


def make_orpo_reference(out):
    """The formula alone: random logits with hand-made float64 gradients, and a table of edge values."""
    folder = out / "orpo_formula"
    folder.mkdir(parents=True, exist_ok=True)
    arrays, values = orpo_reference.random_case(REFERENCE_SEED, ORPO_LAMBDA)
    rtol, atol = TOLERANCES["reference"]
    groups = sorted({name.split(".", 1)[0] for name in arrays})
    write_tensors(folder / "golden.safetensors", {name: mx.array(value) for name, value in arrays.items()})
    write_json(
        folder / "meta.json",
        {
            "name": "orpo_formula",
            "made_by": "tests/golden/make_goldens.py",
            "how": "numpy float64, orpo_reference.py",
            "versions": versions(),
            "seeds": {"data": REFERENCE_SEED},
            "floor": orpo_reference.FLOOR,
            "random": values,
            "edges": orpo_reference.edge_table(),
            "tolerances": {group: {"rtol": rtol, "atol": atol} for group in groups},
        },
    )


def make_all(out):
    for name in tiny_llama.CASES:
        make_llama(out, name)
    for name in ORPO_CASES:
        make_orpo(out, name)
    make_orpo_reference(out)


def compare_tensors(label, want, got, table):
    """Readable differences of two tensor files, by the tolerances of the committed meta file."""
    lines = []
    for name in sorted(want.keys() | got.keys()):
        if name not in got or name not in want:
            lines.append(f"{label} {name}: only in the {'committed' if name in want else 'remade'} file")
            continue
        a, b = want[name], got[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            lines.append(f"{label} {name}: committed {a.dtype} {a.shape}, remade {b.dtype} {b.shape}")
            continue
        row = table.get(name.split(".", 1)[0], {"rtol": 0.0, "atol": 0.0})
        a, b = np.array(a, np.float64), np.array(b, np.float64)
        bad = np.abs(a - b) > row["atol"] + row["rtol"] * np.abs(a)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            lines.append(
                f"{label} {name}: {int(bad.sum())} of {a.size} values differ, "
                f"the first at {list(at)}: committed {float(a[at])!r}, remade {float(b[at])!r}"
            )
    return lines


def compare_json(label, want, got, path=""):
    """Differences of two JSON values; numbers may differ by 1e-12 relative, measured errors are not compared."""
    if path.endswith(".float64_error"):
        return []
    if isinstance(want, dict) and isinstance(got, dict):
        lines = []
        for key in list(want) + [key for key in got if key not in want]:
            if key not in want or key not in got:
                where = "committed" if key in want else "remade"
                lines.append(f"{label} {path}.{key}: only in the {where} file")
            else:
                lines += compare_json(label, want[key], got[key], f"{path}.{key}")
        return lines
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [
            line
            for i, (a, b) in enumerate(zip(want, got))
            for line in compare_json(label, a, b, f"{path}[{i}]")
        ]
    if isinstance(want, float) and isinstance(got, float) and abs(want - got) <= 1e-12 * abs(want):
        return []
    return [] if want == got else [f"{label} {path}: committed {want!r}, remade {got!r}"]


def check(made):
    """Compares every remade file with the committed one; returns the differences."""
    lines = []
    for new in sorted(made.rglob("*")):
        if new.is_dir():
            continue
        label = str(new.relative_to(made))
        old = HERE / label
        if not old.exists():
            lines.append(f"{label}: not committed")
        elif new.suffix == ".safetensors":
            meta = old.parent / "meta.json"
            table = json.loads(meta.read_text())["tolerances"] if new.name == "golden.safetensors" else {}
            lines += compare_tensors(label, mx.load(str(old)), mx.load(str(new)), table)
        else:
            lines += compare_json(label, json.loads(old.read_text()), json.loads(new.read_text()))
    return lines


def main():
    parser = argparse.ArgumentParser(description="Make or check the goldens.")
    parser.add_argument("--check", action="store_true", help="compare with the committed files, write nothing")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to (default: this one)")
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)
    # The CPU backend of mx.compile needs a compiler at run time and falls back without one; the goldens must not
    # depend on that.
    mx.disable_compile()
    if not args.check:
        make_all(args.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        make_all(Path(folder))
        lines = check(Path(folder))
    if lines:
        print("\n".join(lines), file=sys.stderr)
        sys.exit(1)
    print("the goldens are what mlx-lm gives")


if __name__ == "__main__":
    main()
