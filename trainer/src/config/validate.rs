//! Ranges, keys that exclude each other, and keys that the chosen method does not use.

use super::layers::Resolved;
use super::value::{Format, MethodName, OptimizerName, ScheduleName, TrainOn};
use crate::error::{Detail, Result, TrainError};

/// Keys of which at most one may be set.
const EXCLUSIVE: [(&str, &str); 4] = [
    ("lora.scale", "lora.alpha"),
    ("train.iters", "train.epochs"),
    ("data.valid", "data.valid_fraction"),
    ("data.train_on", "data.mask_prompt"),
];

/// The batches of a step are listed before it is taken, so their number must have an end.
const MAX_ACCUMULATION: u64 = 1_000_000;

/// Checks `resolved`, settles pairs of keys of which a higher layer set one, and folds `mask_prompt` into `train_on`.
pub(super) fn check(resolved: &mut Resolved) -> Result<()> {
    for (first, second) in EXCLUSIVE {
        settle(resolved, first, second)?;
    }
    check_required(resolved)?;
    check_ranges(resolved)?;
    check_unused(resolved)?;
    check_data(resolved)?;
    if let Some(mask) = resolved.config.data.mask_prompt {
        resolved.config.data.train_on = if mask { TrainOn::AllAssistant } else { TrainOn::All };
    }
    if resolved.config.output.overwrite && resolved.config.output.resume {
        return Err(complaint(resolved, "output.resume", "true beside output.overwrite = true", "one of the two"));
    }
    Ok(())
}

fn complaint(resolved: &Resolved, key: &str, got: impl Into<String>, wanted: impl Into<String>) -> TrainError {
    TrainError::config(Detail::new(resolved.origins.of(key).place(), key, got, wanted))
}

/// Of two keys that exclude each other the one of the higher layer stays; in one layer they are an error.
fn settle(resolved: &mut Resolved, first: &str, second: &str) -> Result<()> {
    let layers = (resolved.origins.of(first).layer(), resolved.origins.of(second).layer());
    if layers.0 == 0 || layers.1 == 0 {
        return Ok(());
    }
    if layers.0 == layers.1 {
        let got = format!("a value beside {first} ({})", resolved.origins.of(first));
        return Err(complaint(resolved, second, got, format!("{first} or {second}, not both")));
    }
    let loser = if layers.0 < layers.1 { first } else { second };
    resolved.config.reset(loser);
    resolved.origins.forget(loser);
    Ok(())
}

fn check_required(resolved: &Resolved) -> Result<()> {
    let config = &resolved.config;
    let missing = [
        ("model.path", config.model.path.as_str().is_empty(), "--model"),
        ("data.train", config.data.train.as_os_str().is_empty(), "--data"),
        ("output.dir", config.output.dir.as_os_str().is_empty(), "--adapter-path"),
    ];
    for (key, missing, flag) in missing {
        if missing {
            let hint = format!("set it in the configuration file or with {flag}; mlx-train init writes a file");
            return Err(complaint(resolved, key, "no value", "one: this key is required").with_hint(hint));
        }
    }
    Ok(())
}

fn check_ranges(resolved: &Resolved) -> Result<()> {
    let c = &resolved.config;
    // Values reach MLX in f32, where a tiny one is 0 and a huge one infinite.
    let positive = |v: f64| v as f32 > 0.0 && (v as f32).is_finite();
    let share = |v: f64| (0.0..1.0).contains(&v);
    let rules: [(&str, bool, &str); 20] = [
        ("data.max_seq_length", c.data.max_seq_length >= 2, "at least 2"),
        ("data.valid_fraction", share(c.data.valid_fraction), "at least 0 and below 1"),
        ("method.lambda", c.method.lambda == 0.0 || positive(c.method.lambda), "at least 0, within f32"),
        ("lora.rank", c.lora.rank >= 1, "at least 1"),
        ("lora.scale", positive(c.lora.scale), "above 0, within f32"),
        ("lora.alpha", c.lora.alpha.is_none_or(positive), "above 0, within f32"),
        ("lora.num_layers", c.lora.num_layers == -1 || c.lora.num_layers >= 1, "at least 1, or -1 for all layers"),
        ("lora.targets", !c.lora.targets.is_empty(), "at least one name"),
        ("optimizer.learning_rate", c.optimizer.learning_rate > 0.0, "above 0"),
        ("optimizer.betas", share(c.optimizer.betas.0) && share(c.optimizer.betas.1), "each at least 0 and below 1"),
        ("optimizer.eps", positive(c.optimizer.eps), "above 0, within f32"),
        ("optimizer.weight_decay", c.optimizer.weight_decay >= 0.0, "at least 0"),
        ("schedule.min_lr_ratio", (0.0..=1.0).contains(&c.schedule.min_lr_ratio), "from 0 to 1"),
        ("train.iters", c.train.iters >= 1, "at least 1"),
        ("train.epochs", c.train.epochs.is_none_or(positive), "above 0"),
        ("train.batch_size", c.train.batch_size >= 1, "at least 1"),
        (
            "train.grad_accumulation_steps",
            (1..=MAX_ACCUMULATION).contains(&c.train.grad_accumulation_steps),
            "from 1 to 1000000",
        ),
        ("train.max_grad_norm", c.train.max_grad_norm >= 0.0, "at least 0"),
        ("train.max_nonfinite_steps", c.train.max_nonfinite_steps >= 1, "at least 1"),
        ("report.every", c.report.every >= 1, "at least 1"),
    ];
    match rules.iter().find(|(_, holds, _)| !holds) {
        None => check_lists(resolved),
        Some((key, _, wanted)) => {
            let got = c.get(key).map_or_else(|| "nothing".to_owned(), |value| value.to_string());
            Err(complaint(resolved, key, got, *wanted))
        }
    }
}

fn check_lists(resolved: &Resolved) -> Result<()> {
    let targets = &resolved.config.lora.targets;
    let repeated = targets.iter().enumerate().find(|(index, name)| targets[..*index].contains(name));
    if let Some((_, name)) = repeated {
        return Err(complaint(resolved, "lora.targets", format!("\"{name}\" twice"), "each name once"));
    }
    if targets.iter().any(|name| name.trim().is_empty()) {
        return Err(complaint(resolved, "lora.targets", "an empty name", "names of linear layers"));
    }
    if resolved.config.summary.max_tokens == 0 {
        return Err(complaint(resolved, "summary.max_tokens", "0", "at least 1"));
    }
    Ok(())
}

/// A key that is set and would have no effect is a mistake, not a wish to be passed over.
fn check_unused(resolved: &Resolved) -> Result<()> {
    let c = &resolved.config;
    let sft = c.method.name == MethodName::Sft;
    let orpo = c.method.name == MethodName::Orpo;
    let unused = [
        ("method.lambda", sft, "method.name = \"orpo\": sft has no odds-ratio term"),
        ("method.sft_scope", sft, "method.name = \"orpo\": sft has one likelihood term only"),
        ("data.train_on", orpo, "method.name = \"sft\": orpo trains the responses"),
        ("data.mask_prompt", orpo, "method.name = \"sft\": orpo has method.sft_scope"),
        (
            "optimizer.weight_decay",
            c.optimizer.name == OptimizerName::Adam,
            "optimizer.name = \"adamw\": adam has no decay",
        ),
        (
            "schedule.min_lr_ratio",
            c.schedule.name == ScheduleName::Constant,
            "schedule.name = \"cosine\" or \"linear\": a constant rate has no minimum",
        ),
    ];
    match unused.iter().find(|(key, unused, _)| *unused && resolved.origins.is_set(key)) {
        None => Ok(()),
        Some((key, _, wanted)) => Err(complaint(resolved, key, "a value that has no effect", *wanted)),
    }
}

fn check_data(resolved: &Resolved) -> Result<()> {
    let data = &resolved.config.data;
    let fits = match (resolved.config.method.name, data.format) {
        (_, Format::Auto) => true,
        (MethodName::Orpo, format) => format == Format::Preference,
        (MethodName::Sft, format) => format != Format::Preference,
    };
    let method = resolved.config.method.name.as_str();
    if !fits {
        let wanted = if method == "orpo" { "\"preference\" or \"auto\"" } else { "a format for sft, or \"auto\"" };
        let got = format!("\"{}\" with method.name = \"{method}\"", data.format.as_str());
        return Err(complaint(resolved, "data.format", got, wanted));
    }
    let masks = resolved.origins.is_set("data.train_on") || data.mask_prompt == Some(true);
    if data.format == Format::Text && masks && data.train_on != TrainOn::All {
        let key = if data.mask_prompt.is_some() { "data.mask_prompt" } else { "data.train_on" };
        return Err(complaint(resolved, key, "a mask for data.format = \"text\"", "no mask: a text has no prompt"));
    }
    Ok(())
}
