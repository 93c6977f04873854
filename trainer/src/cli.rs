//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{ConfigFile, FlagValue, Resolved, Sources, resolve};
use crate::error::Result;

/// Fine-tunes language models on MLX: LoRA with SFT or ORPO, from one TOML file.
#[derive(Debug, Parser)]
#[command(name = "mlx-train", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Log more to standard error (-vv for everything); TRAINER_LOG or RUST_LOG set it in detail.
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = "Logging")]
    pub verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fine-tune a model.
    Train(ConfigArgs),
    /// Answer a prompt, with or without an adapter.
    Generate(GenerateArgs),
    /// Check a configuration and print every value with its origin.
    Check(ConfigArgs),
    /// Show the data: counts, lengths, truncation, and rows with their loss mask.
    Inspect(InspectArgs),
    /// Write a commented configuration to start from.
    Init(InitArgs),
}

/// A configuration file, and what is set over it.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Configuration file.
    #[arg(value_name = "CONFIG")]
    pub file: Option<PathBuf>,

    /// The same, as mlx-lm spells it.
    #[arg(short = 'c', long = "config", value_name = "CONFIG", conflicts_with = "file")]
    pub config: Option<PathBuf>,

    /// Values set over those of the file.
    #[command(flatten)]
    pub overrides: Overrides,
}

/// Flags for the keys that change most often; `--set` reaches the others.
#[derive(Debug, Clone, Default, Args)]
pub struct Overrides {
    /// Set any key, e.g. --set lora.rank=16; repeatable, the last one stays.
    #[arg(long, value_name = "TABLE.KEY=VALUE", help_heading = "Configuration")]
    pub set: Vec<String>,

    /// Model: a folder, a .gguf file or pip:NAME [model.path].
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub model: Option<String>,

    /// Training rows: a JSONL file, or a folder with train.jsonl [data.train].
    #[arg(long, value_name = "PATH", help_heading = "Data")]
    pub data: Option<String>,

    /// Longest row in tokens [data.max_seq_length].
    #[arg(long, value_name = "TOKENS", help_heading = "Data")]
    pub max_seq_length: Option<String>,

    /// Layers with an adapter, counted from the last; -1 for all [lora.num_layers].
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "LoRA")]
    pub num_layers: Option<String>,

    /// Optimizer steps [train.iters].
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub iters: Option<String>,

    /// Rows per forward pass [train.batch_size].
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub batch_size: Option<String>,

    /// Peak learning rate [optimizer.learning_rate].
    #[arg(long, value_name = "RATE", alias = "lr", help_heading = "Training")]
    pub learning_rate: Option<String>,

    /// Seed of everything drawn [train.seed].
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub seed: Option<String>,

    /// Folder for the results [output.dir].
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub adapter_path: Option<String>,

    /// Replace what an earlier run left in the folder [output.overwrite].
    #[arg(long, help_heading = "Output")]
    pub overwrite: bool,

    /// Go on with the run that the folder holds [output.resume].
    #[arg(long, help_heading = "Output", conflicts_with = "overwrite")]
    pub resume: bool,
}

impl Overrides {
    /// The flags that were given, with the keys they set.
    pub fn flag_values(&self) -> Vec<FlagValue> {
        let texts = [
            ("--model", "model.path", &self.model),
            ("--data", "data.train", &self.data),
            ("--max-seq-length", "data.max_seq_length", &self.max_seq_length),
            ("--num-layers", "lora.num_layers", &self.num_layers),
            ("--iters", "train.iters", &self.iters),
            ("--batch-size", "train.batch_size", &self.batch_size),
            ("--learning-rate", "optimizer.learning_rate", &self.learning_rate),
            ("--seed", "train.seed", &self.seed),
            ("--adapter-path", "output.dir", &self.adapter_path),
        ];
        let switches =
            [("--overwrite", "output.overwrite", self.overwrite), ("--resume", "output.resume", self.resume)];
        let texts = texts.into_iter().filter_map(|(flag, key, value)| Some((flag, key, value.clone()?)));
        let switches = switches.into_iter().filter(|(.., on)| *on).map(|(flag, key, _)| (flag, key, "true".to_owned()));
        texts.chain(switches).map(|(flag, key, value)| FlagValue { flag, key, value }).collect()
    }
}

impl ConfigArgs {
    /// The configuration of these arguments and this process's environment.
    ///
    /// # Errors
    /// A file that cannot be read, and what [`resolve`] rejects.
    pub fn load(&self) -> Result<Resolved> {
        self.load_with(std::env::vars_os().collect())
    }

    /// As [`ConfigArgs::load`], with another environment.
    ///
    /// # Errors
    /// As [`ConfigArgs::load`].
    pub fn load_with(&self, env: Vec<(OsString, OsString)>) -> Result<Resolved> {
        let file = self.file.as_ref().or(self.config.as_ref());
        let file = file.map(|path| ConfigFile::read(path)).transpose()?;
        let (sets, flags) = (self.overrides.set.clone(), self.overrides.flag_values());
        resolve(&Sources { file, env, sets, flags })
    }
}

/// A configuration, and how much of the data to show.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,

    /// Rows to show with their loss mask.
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Data")]
    pub samples: usize,
}

/// Where to write.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// File to write; `-` for standard output. A file that is there is not touched.
    #[arg(value_name = "FILE", default_value = "mlx-train.toml")]
    pub file: PathBuf,
}

/// A model, a prompt, and how to answer it.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Folder of a run: its configuration names the model, its adapter is loaded.
    #[arg(value_name = "RUN", required_unless_present = "model")]
    pub run: Option<PathBuf>,

    /// Model: a folder, a .gguf file or pip:NAME.
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub model: Option<String>,

    /// Folder of the adapter.
    #[arg(long, value_name = "FOLDER", conflicts_with = "run", help_heading = "Model")]
    pub adapter_path: Option<PathBuf>,

    /// What to answer.
    #[arg(short, long, value_name = "TEXT", help_heading = "Prompt")]
    pub prompt: String,

    /// What comes before it.
    #[arg(long, value_name = "TEXT", help_heading = "Prompt")]
    pub system_prompt: Option<String>,

    /// Give the model the prompt as it is.
    #[arg(long, conflicts_with = "system_prompt", help_heading = "Prompt")]
    pub ignore_chat_template: bool,

    /// Longest answer in tokens.
    #[arg(short, long, value_name = "N", default_value_t = 256, help_heading = "Sampling")]
    pub max_tokens: usize,

    /// Temperature; 0 takes the likeliest token.
    #[arg(long, value_name = "T", default_value_t = 0.0, help_heading = "Sampling")]
    pub temp: f32,

    /// Draw among the likeliest tokens of this total probability; 1 for all.
    #[arg(long, value_name = "P", default_value_t = 1.0, help_heading = "Sampling")]
    pub top_p: f32,

    /// Draw among this many likeliest tokens; 0 for all.
    #[arg(long, value_name = "K", default_value_t = 0, help_heading = "Sampling")]
    pub top_k: usize,

    /// Draw among tokens of at least this share of the likeliest one's probability.
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = "Sampling")]
    pub min_p: f32,

    /// Divide the logits of tokens that were said by this; 1 for no penalty.
    #[arg(long, value_name = "X", default_value_t = 1.0, help_heading = "Sampling")]
    pub repetition_penalty: f32,

    /// Seed of the draws.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Sampling")]
    pub seed: u64,
}

/// Reads the command line. `--version` prints `version_lines` below the program's own; `-V` does not.
///
/// # Errors
/// A command line that is not understood, or one that asks for help or the version: clap's error knows what to print
/// and the exit status.
pub fn parse(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    version_lines: &[String],
) -> std::result::Result<Cli, clap::Error> {
    let long = std::iter::once(env!("CARGO_PKG_VERSION")).chain(version_lines.iter().map(String::as_str));
    let command = Cli::command().long_version(long.collect::<Vec<_>>().join("\n"));
    Cli::from_arg_matches(&command.try_get_matches_from(args)?)
}

#[cfg(test)]
mod tests;
