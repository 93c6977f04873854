"""Tiny llama checkpoints for the goldens: configurations, seeded weights, quantised files, loading by mlx-lm.

Used by make_goldens.py; not run on its own.
"""

import json
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map, tree_unflatten
from mlx_lm.models import llama
from mlx_lm.utils import load_model

BASE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 160,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 256,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

# Four bits in groups of 32 everywhere, save one module with its own bits and group and one that stays dense.
QUANTIZATION = {
    "group_size": 32,
    "bits": 4,
    "mode": "affine",
    "model.layers.0.mlp.down_proj": {"group_size": 64, "bits": 8, "mode": "affine"},
    "model.layers.1.self_attn.v_proj": False,
}

# name -> (changes to BASE, seed of the weights, LoRA settings). The LoRA settings differ on purpose: all linears,
# the last layer only, and a list of keys are the three forms of an adapter_config.json.
CASES = {
    "llama_untied": ({}, 11, {"num_layers": 2, "keys": None}),
    "llama_tied": ({"tie_word_embeddings": True}, 12, {"num_layers": 2, "keys": None}),
    "llama_bias": (
        {"attention_bias": True, "mlp_bias": True},
        13,
        {"num_layers": -1, "keys": ["self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"]},
    ),
    "llama3_rope": (
        {"rope_scaling": LLAMA3_ROPE, "rope_theta": 500000.0, "tie_word_embeddings": True},
        14,
        {"num_layers": 1, "keys": None},
    ),
    "llama_linear_rope": (
        {"rope_scaling": {"rope_type": "linear", "factor": 4.0}, "tie_word_embeddings": True},
        15,
        {"num_layers": 1, "keys": None},
    ),
    "llama_4bit": (
        {
            "tie_word_embeddings": True,
            "quantization": QUANTIZATION,
            "quantization_config": QUANTIZATION,
        },
        16,
        {"num_layers": 2, "keys": None},
    ),
}

LORA = {"rank": 4, "scale": 2.5, "dropout": 0.0}


def config_of(name):
    """The config.json of a case, as a dictionary."""
    return {**BASE, **CASES[name][0]}


def _random_weights(model, seed):
    """Seeded float32 weights, large enough that attention and the logits are far from uniform."""
    names = sorted(name for name, _ in tree_flatten(model.parameters()))
    keys = mx.random.split(mx.random.key(seed), len(names))
    shapes = {name: value.shape for name, value in tree_flatten(model.parameters())}
    weights = {}
    for name, key in zip(names, keys):
        shape = shapes[name]
        noise = mx.random.normal(shape, key=key)
        if name.endswith("norm.weight"):
            weights[name] = 1.0 + 0.1 * noise
        elif name.endswith(".bias"):
            weights[name] = 0.1 * noise
        elif "embed_tokens" in name or "lm_head" in name:
            weights[name] = 0.2 * noise
        else:
            weights[name] = noise * (1.5 / shape[-1] ** 0.5)
    return weights


def write_checkpoint(folder, name):
    """Writes `config.json` and `model.safetensors` of a case into `folder`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(name)
    model = llama.Model(llama.ModelArgs.from_dict(config))
    model.load_weights(list(_random_weights(model, CASES[name][1]).items()))
    quantization = config.get("quantization")
    if quantization:

        def choose(path, module):
            if not hasattr(module, "to_quantized"):
                return False
            return quantization.get(path, True)

        nn.quantize(model, quantization["group_size"], quantization["bits"], class_predicate=choose)
    weights = dict(tree_flatten(model.parameters()))
    mx.eval(weights)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def load(folder):
    """The model as mlx-lm itself loads it from a folder."""
    model, _ = load_model(Path(folder))
    return model


def load_float64(folder):
    """The same model in float64, quantised modules replaced by the dense weights that they stand for.

    It measures how far float32 rounding alone moves a result, which is what a tolerance must allow.
    """
    model = load(folder)
    dense = []
    for path, module in model.named_modules():
        if isinstance(module, nn.QuantizedEmbedding):
            embedding = nn.Embedding(1, 1)
            embedding.weight = _dequantized(module)
            dense.append((path, embedding))
        elif isinstance(module, nn.QuantizedLinear):
            linear = nn.Linear(1, 1, bias="bias" in module)
            linear.weight = _dequantized(module)
            if "bias" in module:
                linear.bias = module.bias
            dense.append((path, linear))
    model.update_modules(tree_unflatten(dense))
    model.update(tree_map(lambda value: value.astype(mx.float64), model.parameters()))
    return model


def _dequantized(module):
    return mx.dequantize(
        module.weight,
        module.scales,
        module.biases,
        group_size=module.group_size,
        bits=module.bits,
        mode=module.mode,
    )
