//! The files of a run → encoded training and validation rows.

use std::path::{Path, PathBuf};

use super::encode::{EncodeOptions, Example, RowEncoder};
use super::encoder::TextEncoder;
use super::jsonl::{JsonRow, read_rows};
use super::order::permutation;
use super::preference::PreferenceExample;
use super::report::{DataReport, Outcome};
use super::row::{Row, parse_row};
use crate::config::Config;
use crate::config::schema::DataTable;
use crate::config::value::MethodName;
use crate::error::{Detail, Place, Result, TrainError};

/// Encoded rows of one kind; never empty in a [`Dataset`].
#[derive(Debug, Clone, PartialEq)]
pub enum Examples {
    /// For supervised fine-tuning.
    Sft(Vec<Example>),
    /// For preference methods.
    Preference(Vec<PreferenceExample>),
}

impl Examples {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Sft(examples) => examples.len(),
            Self::Preference(pairs) => pairs.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of each row in tokens; of a pair, the longer side's.
    pub fn lengths(&self) -> Vec<usize> {
        match self {
            Self::Sft(examples) => examples.iter().map(|example| example.ids.len()).collect(),
            Self::Preference(pairs) => {
                pairs.iter().map(|pair| pair.chosen.ids.len().max(pair.rejected.ids.len())).collect()
            }
        }
    }

    /// Where these rows stand, at most eight of them.
    pub fn describe(&self, batches: &[Vec<usize>]) -> String {
        let indices: Vec<usize> = batches.iter().flatten().copied().collect();
        let place = |index: &usize| match self {
            Self::Sft(examples) => examples[*index].origin.place().to_string(),
            Self::Preference(pairs) => pairs[*index].chosen.origin.place().to_string(),
        };
        let more = if indices.len() > 8 { ", …" } else { "" };
        indices.iter().take(8).map(place).collect::<Vec<_>>().join(", ") + more
    }

    fn select(&self, indices: &[usize]) -> Self {
        match self {
            Self::Sft(examples) => Self::Sft(indices.iter().map(|index| examples[*index].clone()).collect()),
            Self::Preference(pairs) => Self::Preference(indices.iter().map(|index| pairs[*index].clone()).collect()),
        }
    }
}

/// The rows of a run.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// Rows to train on.
    pub train: Examples,
    /// Rows to validate on.
    pub valid: Option<Examples>,
    /// What became of each file's rows, the training file first.
    pub reports: Vec<DataReport>,
}

impl Dataset {
    /// Reads and encodes the files that `config` names. `data.train` may be a folder with `train.jsonl` and perhaps
    /// `valid.jsonl`.
    ///
    /// # Errors
    /// What reading and encoding reject, a file of which no row is left, too few rows to split.
    pub fn load(config: &Config, encoder: &dyn TextEncoder) -> Result<Self> {
        let options = EncodeOptions::from(&config.data);
        let (train_path, valid_path) = files(&config.data);
        let (train, report) = load_file(&train_path, config.method.name, &options, encoder)?;
        let mut dataset = Self { train, valid: None, reports: vec![report] };
        match valid_path {
            Some(path) => {
                let (valid, report) = load_file(&path, config.method.name, &options, encoder)?;
                dataset.valid = Some(valid);
                dataset.reports.push(report);
            }
            None if config.data.valid_fraction > 0.0 => {
                dataset.split(config.data.valid_fraction, config.train.seed, &train_path)?;
            }
            None => {}
        }
        Ok(dataset)
    }

    /// Moves a share of the training rows, at least one, to validation.
    fn split(&mut self, fraction: f64, seed: u64, path: &Path) -> Result<()> {
        let count = self.train.len();
        if count < 2 {
            let detail =
                Detail::new(Place::file(path), "", "one usable row", "two or more, to keep some for validation");
            return Err(TrainError::data(detail.hint("set data.valid_fraction = 0")));
        }
        let held = ((count as f64 * fraction).round() as usize).clamp(1, count - 1);
        let mut order = permutation(count, seed, u64::MAX);
        let mut valid = order.split_off(count - held);
        // Both parts stay in the file's order.
        order.sort_unstable();
        valid.sort_unstable();
        self.valid = Some(self.train.select(&valid));
        self.train = self.train.select(&order);
        Ok(())
    }
}

/// The training file and the validation file.
pub fn files(data: &DataTable) -> (PathBuf, Option<PathBuf>) {
    if !data.train.is_dir() {
        return (data.train.clone(), data.valid.clone());
    }
    let beside = data.train.join("valid.jsonl");
    let found = (data.valid_fraction == 0.0 && beside.is_file()).then_some(beside);
    (data.train.join("train.jsonl"), data.valid.clone().or(found))
}

/// Reads and encodes one file.
///
/// # Errors
/// What reading and encoding reject; a file of which no row is left.
pub fn load_file(
    path: &Path,
    method: MethodName,
    options: &EncodeOptions,
    encoder: &dyn TextEncoder,
) -> Result<(Examples, DataReport)> {
    let rows = read_rows(path)?;
    let mut report = DataReport::new(path, options.max_seq_length);
    let encoder = RowEncoder::new(encoder, options);
    let examples = match method {
        MethodName::Sft => Examples::Sft(encode_rows(&rows, options, &mut report, example_size, |row, json| {
            encoder.example(row, &json.place)
        })?),
        MethodName::Orpo => Examples::Preference(encode_rows(&rows, options, &mut report, pair_size, |row, json| {
            encoder.pair(row, &json.place)
        })?),
    };
    report.require_rows()?;
    Ok((examples, report))
}

fn encode_rows<T>(
    rows: &[JsonRow],
    options: &EncodeOptions,
    report: &mut DataReport,
    size: fn(&T) -> (usize, usize, usize),
    encode: impl Fn(&Row, &JsonRow) -> Result<Outcome<T>>,
) -> Result<Vec<T>> {
    let mut examples = Vec::with_capacity(rows.len());
    for json in rows {
        let outcome = encode(&parse_row(json, options.format)?, json)?;
        examples.extend(report.count(outcome, &json.place, size));
    }
    Ok(examples)
}

fn example_size(example: &Example) -> (usize, usize, usize) {
    (example.ids.len(), example.trained_tokens(), example.ids.len())
}

fn pair_size(pair: &PreferenceExample) -> (usize, usize, usize) {
    let (chosen, rejected) = (example_size(&pair.chosen), example_size(&pair.rejected));
    (chosen.0 + rejected.0, chosen.1 + rejected.1, chosen.2.max(rejected.2))
}

#[cfg(test)]
mod tests;
