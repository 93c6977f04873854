//! `metrics.jsonl`: one record per line, under the names of mlx-lm and TRL.
//!
//! A record with `train_loss` is a report of training steps, one with `val_loss` a validation; the preference keys mean
//! the same in both. A number that is not finite is written as null, because JSON has no word for it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Result, Stage, TrainError};
use crate::output::write_atomically;

/// Means over the pairs of a report.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PreferenceMetrics {
    /// Reward of the better response: λ times its mean log-probability.
    #[serde(rename = "rewards/chosen")]
    pub rewards_chosen: f64,
    /// Reward of the worse response.
    #[serde(rename = "rewards/rejected")]
    pub rewards_rejected: f64,
    /// Share of the pairs whose better response has the higher reward.
    #[serde(rename = "rewards/accuracies")]
    pub rewards_accuracies: f64,
    /// Difference of the rewards.
    #[serde(rename = "rewards/margins")]
    pub rewards_margins: f64,
    /// Log-probability of the better response, mean over its tokens.
    #[serde(rename = "logps/chosen")]
    pub logps_chosen: f64,
    /// Log-probability of the worse response, mean over its tokens.
    #[serde(rename = "logps/rejected")]
    pub logps_rejected: f64,
    /// The likelihood term of the loss.
    pub nll_loss: f64,
    /// `log σ` of the log odds ratio.
    pub log_odds_ratio: f64,
    /// The log odds ratio.
    pub log_odds_chosen: f64,
}

/// A report of training steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainRecord {
    /// Optimizer steps done.
    pub iteration: u64,
    /// Mean loss since the last report.
    pub train_loss: f64,
    /// Learning rate of the last step.
    pub learning_rate: f64,
    /// Optimizer steps per second since the last report, validation and saving excluded.
    pub iterations_per_second: f64,
    /// Targets per second, likewise.
    pub tokens_per_second: f64,
    /// Targets since the start.
    pub trained_tokens: u64,
    /// Highest memory in use, in GB (10⁹ bytes).
    pub peak_memory: f64,
    /// Global norm of the last step's gradient, before clipping.
    pub grad_norm: f64,
    /// Passes over the data so far.
    pub epoch: f64,
    /// Steps that were skipped since the start because they were not finite.
    pub skipped_steps: u64,
    /// For preference methods.
    #[serde(flatten)]
    pub preference: Option<PreferenceMetrics>,
}

/// A validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidRecord {
    /// Optimizer steps done.
    pub iteration: u64,
    /// Mean loss by target.
    pub val_loss: f64,
    /// Seconds it took.
    pub val_time: f64,
    /// For preference methods.
    #[serde(flatten)]
    pub preference: Option<PreferenceMetrics>,
}

/// Appends records to a file; each is on disk as a whole line or not at all once `write` has returned.
#[derive(Debug)]
pub struct MetricsWriter {
    path: PathBuf,
    file: File,
}

impl MetricsWriter {
    /// A new file; one that is there is emptied.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|error| TrainError::io(Stage::Output, "create", path, error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Goes on with the file of a run that resumes after `step`: records of later steps, and a last line that was cut
    /// off, are removed. A file that is missing is created.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn resume(path: &Path, step: u64) -> Result<Self> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::create(path),
            Err(error) => return Err(TrainError::io(Stage::Output, "read", path, error)),
        };
        let text = String::from_utf8_lossy(&bytes);
        let done = |line: &&str| {
            let record: Option<Value> = serde_json::from_str(line).ok();
            record.and_then(|record| record.get("iteration")?.as_u64()).is_some_and(|iteration| iteration <= step)
        };
        let kept: String = text.lines().filter(done).map(|line| format!("{line}\n")).collect();
        write_atomically(path, |out| out.write_all(kept.as_bytes()))?;
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(|error| TrainError::io(Stage::Output, "open", path, error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// The first validation in the file, which a resumed run compares its last one with.
    pub fn first_valid(&self) -> Option<ValidRecord> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        text.lines().find_map(|line| serde_json::from_str(line).ok())
    }

    /// Appends a record.
    ///
    /// # Errors
    /// A file that cannot be written, e.g. a full disk.
    pub fn write<T: Serialize>(&mut self, record: &T) -> Result<()> {
        let mut line = serde_json::to_vec(record)
            .map_err(|error| TrainError::io(Stage::Output, "write", &self.path, std::io::Error::other(error)))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| TrainError::io(Stage::Output, "write", &self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(iteration: u64) -> TrainRecord {
        TrainRecord {
            iteration,
            train_loss: 2.5,
            learning_rate: 1e-5,
            iterations_per_second: 1.5,
            tokens_per_second: 200.0,
            trained_tokens: 1764,
            peak_memory: 1.25,
            grad_norm: f64::NAN,
            epoch: 0.5,
            skipped_steps: 0,
            preference: None,
        }
    }

    #[test]
    fn records_carry_the_names_of_mlx_lm_and_trl() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut writer = MetricsWriter::create(&path).unwrap();
        writer.write(&record(10)).unwrap();
        let preference = Some(PreferenceMetrics { rewards_chosen: -0.5, ..PreferenceMetrics::default() });
        writer.write(&ValidRecord { iteration: 10, val_loss: 3.5, val_time: 2.0, preference }).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            text,
            "{\"iteration\":10,\"train_loss\":2.5,\"learning_rate\":0.00001,\"iterations_per_second\":1.5,\
             \"tokens_per_second\":200.0,\"trained_tokens\":1764,\"peak_memory\":1.25,\"grad_norm\":null,\"epoch\":0.5,\
             \"skipped_steps\":0}\n\
             {\"iteration\":10,\"val_loss\":3.5,\"val_time\":2.0,\"rewards/chosen\":-0.5,\"rewards/rejected\":0.0,\
             \"rewards/accuracies\":0.0,\"rewards/margins\":0.0,\"logps/chosen\":0.0,\"logps/rejected\":0.0,\
             \"nll_loss\":0.0,\"log_odds_ratio\":0.0,\"log_odds_chosen\":0.0}\n"
        );
    }

    #[test]
    fn a_resumed_run_drops_later_records_and_a_line_that_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut writer = MetricsWriter::create(&path).unwrap();
        for iteration in [10, 20, 30] {
            writer.write(&record(iteration)).unwrap();
        }
        writer.file.write_all(b"{\"iteration\": 1").unwrap();
        let mut writer = MetricsWriter::resume(&path, 20).unwrap();
        writer.write(&record(21)).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let iterations: Vec<u64> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["iteration"].as_u64().unwrap())
            .collect();
        assert_eq!(iterations, [10, 20, 21]);
    }

    #[test]
    fn the_first_validation_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = MetricsWriter::create(&folder.path().join("metrics.jsonl")).unwrap();
        assert_eq!(writer.first_valid(), None);
        writer.write(&record(1)).unwrap();
        let preference = Some(PreferenceMetrics { logps_chosen: -0.5, ..PreferenceMetrics::default() });
        let valid = |val_loss, preference| ValidRecord { iteration: 1, val_loss, val_time: 2.0, preference };
        writer.write(&valid(3.5, preference)).unwrap();
        writer.write(&valid(2.5, None)).unwrap();
        assert_eq!(writer.first_valid(), Some(valid(3.5, preference)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let mut writer = MetricsWriter::create(Path::new("/dev/full")).unwrap();
        let error = writer.write(&record(1)).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.exit_code()), ("cannot write /dev/full", 1));
    }
}
