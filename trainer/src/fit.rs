//! Whether configuration, data and model fit together: what each stage alone cannot see.

use models::Model;
use models::lora::is_target;

use crate::config::Resolved;
use crate::data::{Dataset, Example, Examples};
use crate::error::{Detail, Result, TrainError};

/// Checks the adapter's settings and the rows' ids against the model.
///
/// # Errors
/// More adapted layers than there are, a target that names no linear, a rank above both sizes of one, a token id that the
/// model does not have.
pub fn check(resolved: &Resolved, model: &Model, data: &Dataset) -> Result<()> {
    check_layers(resolved, model.num_layers())?;
    let paths: Vec<String> = model.linears().into_iter().map(|(path, _)| path).collect();
    check_targets(resolved, &paths)?;
    check_rank(resolved, model)?;
    let vocabulary = model.config().vocab_size;
    [Some(&data.train), data.valid.as_ref()].into_iter().flatten().try_for_each(|rows| check_ids(rows, vocabulary))
}

fn check_layers(resolved: &Resolved, total: usize) -> Result<()> {
    let wanted = resolved.config.lora.num_layers;
    if usize::try_from(wanted).is_ok_and(|wanted| wanted > total) {
        let limit = format!("at most {total}, the layers of the model, or -1 for all");
        return Err(complaint(resolved, "lora.num_layers", wanted.to_string(), limit));
    }
    Ok(())
}

fn check_targets(resolved: &Resolved, paths: &[String]) -> Result<()> {
    let targets = &resolved.config.lora.targets;
    let Some(unknown) = targets.iter().find(|target| !paths.iter().any(|path| is_target(path, target))) else {
        return Ok(());
    };
    let mut names: Vec<&str> = Vec::new();
    for name in paths.iter().filter_map(|path| path.rsplit('.').next()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let wanted = format!("linears of the model: {}", names.join(", "));
    Err(complaint(resolved, "lora.targets", format!("\"{unknown}\""), wanted))
}

/// A higher rank than a linear's sizes adds nothing, and one beyond memory would end the process inside MLX.
fn check_rank(resolved: &Resolved, model: &Model) -> Result<()> {
    let lora = &resolved.config.lora;
    let linears = model.linears().into_iter();
    let targets = linears.filter(|(path, _)| lora.targets.iter().any(|target| is_target(path, target)));
    let limits = targets.map(|(path, linear)| (linear.weight.in_features().max(linear.weight.out_features()), path));
    match limits.min() {
        Some((limit, path)) if i32::try_from(lora.rank).map_or(true, |rank| rank > limit) => {
            let wanted = format!("at most {limit}, the greater size of `{path}`");
            Err(complaint(resolved, "lora.rank", lora.rank.to_string(), wanted))
        }
        _ => Ok(()),
    }
}

fn complaint(resolved: &Resolved, key: &str, got: String, wanted: String) -> TrainError {
    TrainError::config(Detail::new(resolved.origins.of(key).place(), key, got, wanted))
}

/// MLX does not check indices, so an id beyond the embedding would read other memory.
fn check_ids(rows: &Examples, vocabulary: usize) -> Result<()> {
    let check = |example: &Example| match example.ids.iter().find(|id| **id as usize >= vocabulary) {
        None => Ok(()),
        Some(id) => {
            let wanted = format!("ids below {vocabulary}, the vocabulary of the model");
            let detail = Detail::new(example.origin.place(), "", format!("token id {id}"), wanted);
            Err(TrainError::data(detail.hint("the tokenizer has more tokens than the model: is it another model's?")))
        }
    };
    match rows {
        Examples::Sft(examples) => examples.iter().try_for_each(check),
        Examples::Preference(pairs) => pairs.iter().flat_map(|pair| [&pair.chosen, &pair.rejected]).try_for_each(check),
    }
}
