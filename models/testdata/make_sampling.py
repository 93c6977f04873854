"""Writes sampling.json: the tokens that mlx-lm's own filters leave, for logits and options drawn at random."""

import json
import pathlib
import random

import mlx.core as mx
from mlx_lm import sample_utils

random.seed(11)
rows = []
for _ in range(60):
    size = random.choice([5, 40])
    # Sixteenths are exact in every float type, and some of them are equal.
    logits = [random.randint(-64, 64) / 16 for _ in range(size)]
    options = {
        "top_p": random.choice([0.0, 0.3, 0.7, 0.9, 0.99]),
        "min_p": random.choice([0.0, 0.05, 0.3]),
        "top_k": random.choice([0, 1, 3, 4]),
        "repetition_penalty": random.choice([1.0, 1.3, 0.8]),
        "repetition_context": random.choice([1, 4, 20]),
    }
    history = [random.randrange(size) for _ in range(random.randint(0, 8))]
    values = mx.array([logits])
    penalty = sample_utils.make_repetition_penalty(options["repetition_penalty"], options["repetition_context"])
    values = penalty(mx.array(history, dtype=mx.int32), values)
    values = values - mx.logsumexp(values, axis=-1, keepdims=True)
    if 0 < options["top_p"] < 1:
        values = sample_utils.apply_top_p(values, options["top_p"])
    if options["min_p"] != 0:
        values = sample_utils.apply_min_p(values, options["min_p"])
    if options["top_k"] > 0:
        values = sample_utils.apply_top_k(values, options["top_k"])
    kept = [index for index, value in enumerate(values[0].tolist()) if value != -float("inf")]
    logprobs = [values[0][index].item() for index in kept]
    rows.append({"logits": logits, "history": history, "options": options, "kept": kept, "logprobs": logprobs})
place = pathlib.Path(__file__).with_name("sampling.json")
place.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
print(len(rows), "cases")
