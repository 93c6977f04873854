#!/usr/bin/env bash
# LoRA SFT steps of the SmolLM2-135M shape in mlx-lm (stock wheel, its own compiled step) and here, one after the other.
#
#     tests/bench/vs_mlx_lm.sh [f32 bf16 4bit]
#
# prints the machine's load, then a line a case in tokens per second: `f32 ours A stock B ratio R`. The stock 4-bit step
# takes minutes at 512 tokens, so it gets 32 and is compared per token. Ours: the median of five steps; stock: its fastest. `bf16` and
# `4bit` are the dtype of the checkpoint; each side computes as it does by default (here in f32 on a CPU).
set -euo pipefail
cd "$(dirname "$0")/../.."
cases=("$@")
[ ${#cases[@]} -gt 0 ] || cases=(f32 bf16 4bit)

cargo build -q --release -p trainer --bench step
python=$(cargo run -q --release -p workspace-tests --bin peer)

number() { "$python" -c 'import json, sys; print(json.loads(sys.stdin.read())[sys.argv[1]])' "$1"; }

echo "load $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
for case in "${cases[@]}"; do
    case $case in
        4bit) stock_tokens=32 ;;
        f32 | bf16) stock_tokens=512 ;;
        *) echo "unknown case \`$case\`: f32, bf16 or 4bit" >&2; exit 2 ;;
    esac
    ours=$(cargo bench -q -p trainer --bench step -- --json --case "sft-$case" --tokens 512 --steps 5 | number tokens_per_second)
    stock=$("$python" tests/bench/peer_step.py --dtype "$case" --tokens "$stock_tokens" --steps 2 | number tokens_per_second)
    "$python" -c 'import sys; c, a, b = sys.argv[1], *map(float, sys.argv[2:]); print(f"{c} ours {a:.1f} stock {b:.2f} ratio {a / b:.1f}")' \
        "$case" "$ours" "$stock"
done
