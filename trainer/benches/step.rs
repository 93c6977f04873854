//! Training speed and memory of LoRA on the SmolLM2-135M shape with random weights.
//!
//! `cargo bench -p trainer --bench step -- --json [--tokens 512] [--steps 3] [--case sft-f32]` prints one JSON object a
//! case (METHOD-PRECISION: sft or orpo; f32, bf16 or 4bit; without `--case` four of them): tokens per second (median of
//! the steps after a warm-up), MLX's peak memory and the process's so far.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use mlx_rs_core::{Dtype, memory, ops, random, transforms};
use models::Model;
use models::config::ModelConfig;
use models::lora::{Adapter, LoraSpec};
use models::weights::Weights;
use serde_json::json;
use trainer::batch::{HostRow, Rows, collate};
use trainer::config::value::ComputeDtype;
use trainer::loss::{Denominators, Method, SftScope};
use trainer::optimizer::{Adam, AdamConfig};
use trainer::step::{StepContext, TrainState, take_step};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const CASES: [&str; 4] = ["sft-f32", "sft-4bit", "orpo-f32", "orpo-4bit"];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str, default: usize| -> Outcome<usize> {
        match arguments.iter().position(|argument| argument == flag) {
            Some(at) => Ok(arguments.get(at + 1).ok_or("a number is missing")?.parse()?),
            None => Ok(default),
        }
    };
    let (tokens, steps) = (number("--tokens", 512)?, number("--steps", 3)?);
    if tokens < 8 || steps == 0 {
        return Err("--tokens is at least 8 and --steps at least 1".into());
    }
    let chosen: Vec<&str> = match arguments.iter().position(|argument| argument == "--case") {
        Some(at) => vec![arguments.get(at + 1).ok_or("a case is missing")?],
        None => CASES.to_vec(),
    };
    let as_json = arguments.iter().any(|argument| argument == "--json");
    for case in chosen {
        let line = run(case, tokens, steps)?;
        if as_json {
            println!("{line}");
        } else {
            println!(
                "{case:10} {:>8.1} tokens/s  peak {:>5.2} GiB",
                line["tokens_per_second"].as_f64().unwrap_or(0.0),
                gib(&line["peak_memory_bytes"])
            );
        }
    }
    Ok(())
}

fn gib(bytes: &serde_json::Value) -> f64 {
    bytes.as_f64().unwrap_or(0.0) / f64::from(1 << 30)
}

fn run(case: &str, tokens: usize, steps: usize) -> Outcome<serde_json::Value> {
    let (method_name, precision) = case.split_once('-').ok_or("a case is METHOD-PRECISION")?;
    let model = model(precision)?;
    let spec = LoraSpec {
        rank: 8,
        scale: 20.0,
        targets: ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
            .map(String::from)
            .to_vec(),
        num_layers: 16,
    };
    let adapter = Adapter::new(&model, &spec, 0)?;
    let (method, rows, denominators, counted) = work(method_name, tokens)?;
    let adam = AdamConfig { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0, bias_correction: false };
    let parameters = adapter.parameters().to_vec();
    let mut state = TrainState { optimizer: Adam::new(adam, &parameters)?, parameters };
    let context = StepContext { model: &model, adapter: &adapter, method, max_grad_norm: 0.0 };
    memory::reset_peak_memory()?;
    let mut seconds = Vec::new();
    let mut losses = Vec::new();
    for _ in 0..=steps {
        let start = Instant::now();
        let window = std::iter::once(Ok(rows.clone()));
        let report = take_step(&context, &mut state, window, denominators, 1e-5)?;
        seconds.push(start.elapsed().as_secs_f64());
        losses.push(report.loss);
    }
    let mut timed = seconds[1..].to_vec();
    timed.sort_by(f64::total_cmp);
    let median = timed[timed.len() / 2];
    Ok(json!({
        "case": case, "tokens": counted, "step_seconds": seconds, "tokens_per_second": counted as f64 / median,
        "peak_memory_bytes": memory::get_peak_memory()?, "process_peak_bytes": process_peak(), "losses": losses,
        "blas": mlx_rs_core::runtime::BLAS,
    }))
}

/// One row of `tokens` for SFT; a chosen and a rejected row of half as many each for ORPO.
fn work(method: &str, tokens: usize) -> Outcome<(Method, Rows, Denominators, usize)> {
    let ids: Vec<u32> = (0..tokens as u32 + 1).map(|i| (i * 7919 + 13) % 49_152).collect();
    let everything = |length: usize| (0..length).map(|at| if at == 0 { 0.0 } else { 1.0 }).collect::<Vec<f32>>();
    match method {
        "sft" => {
            let row = HostRow { ids: &ids, likelihood: everything(ids.len()), response: vec![false; ids.len()] };
            Ok((Method::Sft, collate(&[row], 0)?, Denominators { tokens: tokens as f64, pairs: 0.0 }, tokens))
        }
        "orpo" => {
            let half = tokens / 2;
            let response: Vec<bool> = (0..half + 1).map(|at| at > half / 4).collect();
            let chosen =
                HostRow { ids: &ids[..half + 1], likelihood: everything(half + 1), response: response.clone() };
            let rejected = HostRow { ids: &ids[half - 1..2 * half], likelihood: vec![0.0; half + 1], response };
            let method = Method::Orpo { lambda: 0.1, scope: SftScope::Full };
            let denominators = Denominators { tokens: half as f64, pairs: 1.0 };
            Ok((method, collate(&[chosen, rejected], 0)?, denominators, 2 * half))
        }
        other => Err(format!("unknown method `{other}`").into()),
    }
}

/// The 135M shape with random weights, in the dtype that the trainer computes in by default; `4bit` quantises every
/// matrix in groups of 64.
fn model(precision: &str) -> Outcome<Model> {
    let quantised = precision == "4bit";
    let mut raw = json!({
        "model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9,
        "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152, "rms_norm_eps": 1e-5,
        "rope_theta": 100000.0, "tie_word_embeddings": true,
    });
    if quantised {
        raw["quantization"] = json!({"group_size": 64, "bits": 4});
    }
    let object = raw.as_object().cloned().unwrap_or_default();
    let config = ModelConfig::from_json(Path::new("bench"), object)?;
    let mut tensors = BTreeMap::new();
    let mut key = random::key(0)?;
    let mut matrix = |name: String, out: i32, inp: i32| -> mlx_rs_core::Result<()> {
        let keys = random::split(&key, 2)?;
        let half = |row: i32| ops::slice(&keys, &[row, 0], &[row + 1, 2], &[1, 1])?.reshape(&[2]);
        let weight = random::normal(&[out, inp], Dtype::Float32, 0.0, 0.02, Some(&half(1)?))?;
        key = half(0)?;
        if quantised {
            let parts = ops::quantize(&weight, Some(64), Some(4), "affine")?;
            for (part, array) in ["weight", "scales", "biases"].iter().zip(parts) {
                tensors.insert(format!("{name}.{part}"), array);
            }
        } else {
            tensors.insert(format!("{name}.weight"), weight);
        }
        Ok(())
    };
    matrix("model.embed_tokens".into(), 49152, 576)?;
    for layer in 0..30 {
        let at = |part: &str| format!("model.layers.{layer}.{part}");
        for (part, out, inp) in [
            ("self_attn.q_proj", 576, 576),
            ("self_attn.k_proj", 192, 576),
            ("self_attn.v_proj", 192, 576),
            ("self_attn.o_proj", 576, 576),
            ("mlp.gate_proj", 1536, 576),
            ("mlp.up_proj", 1536, 576),
            ("mlp.down_proj", 576, 1536),
        ] {
            matrix(at(part), out, inp)?;
        }
    }
    let norms = (0..30).flat_map(|layer| {
        ["input_layernorm", "post_attention_layernorm"].map(|norm| format!("model.layers.{layer}.{norm}.weight"))
    });
    for name in norms.chain(["model.norm.weight".to_owned()]) {
        tensors.insert(name, ops::ones(&[576], Dtype::Float32)?);
    }
    transforms::eval(tensors.values())?;
    if precision == "bf16" {
        for tensor in tensors.values_mut() {
            *tensor = tensor.astype(Dtype::Bfloat16)?;
        }
    }
    let compute = trainer::base::compute(ComputeDtype::Auto)?;
    let weights = Weights::new(tensors, Path::new("bench"), &config, compute)?;
    Ok(Model::build(config, weights)?)
}

/// Peak resident bytes of this process (Linux).
fn process_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
