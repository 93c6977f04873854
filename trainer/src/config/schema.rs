//! The configuration's tables: every key with its type, default, aliases and description.
//!
//! The descriptions are written once, here: `docs/CONFIG.md` and the file that `init` writes are made from them.

use std::path::PathBuf;

use toml::Value;

use super::value::{
    ChatTemplateUse, ComputeDtype, Format, MethodName, ModelSpec, OptimizerName, Order, ScheduleName, Setting,
    SftScope, TrainOn,
};

/// A table of the configuration.
#[derive(Debug)]
pub struct TableInfo {
    /// Its name.
    pub name: &'static str,
    /// Lines of its description.
    pub docs: &'static [&'static str],
    /// Its keys, in order.
    pub keys: &'static [KeyInfo],
}

/// A key of the configuration.
#[derive(Debug)]
pub struct KeyInfo {
    /// `table.name`.
    pub path: &'static str,
    /// Its table.
    pub table: &'static str,
    /// Its name in the table.
    pub name: &'static str,
    /// Other spellings that mean the same.
    pub aliases: &'static [&'static str],
    /// Lines of its description.
    pub docs: &'static [&'static str],
    /// A value in TOML, for keys without a default.
    pub example: Option<&'static str>,
    /// Whether a relative value in a file is relative to that file's folder.
    pub is_path: bool,
    /// What a value looks like.
    pub wanted: fn() -> String,
}

impl KeyInfo {
    /// The environment variable that sets the key.
    pub fn variable(&self) -> String {
        format!("TRAINER_{}_{}", self.table.to_uppercase(), self.name.to_uppercase())
    }
}

/// A value of the wrong type; what was wanted is in the key's [`KeyInfo`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongType;

macro_rules! example {
    () => {
        None
    };
    ($example:literal) => {
        Some($example)
    };
}

macro_rules! tables {
    ($(
        $(#[doc = $table_doc:literal])+
        $table:ident: $Table:ident {
            $(
                $(#[doc = $doc:literal])+
                $key:ident $(| $alias:literal)*: $kind:ty = $default:expr $(, $example:literal)?;
            )+
        }
    )+) => {
        $(
            $(#[doc = $table_doc])+
            #[derive(Debug, Clone, PartialEq)]
            pub struct $Table { $( $(#[doc = $doc])+ pub $key: $kind, )+ }

            impl Default for $Table {
                fn default() -> Self {
                    Self { $( $key: $default, )+ }
                }
            }
        )+

        /// The whole configuration.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Config { $( $(#[doc = $table_doc])+ pub $table: $Table, )+ }

        /// All tables, in order.
        pub static TABLES: &[TableInfo] = &[$(
            TableInfo {
                name: stringify!($table),
                docs: &[$($table_doc),+],
                keys: &[$(
                    KeyInfo {
                        path: concat!(stringify!($table), ".", stringify!($key)),
                        table: stringify!($table),
                        name: stringify!($key),
                        aliases: &[$($alias),*],
                        docs: &[$($doc),+],
                        example: example!($($example)?),
                        is_path: <$kind as Setting>::IS_PATH,
                        wanted: <$kind as Setting>::wanted,
                    },
                )+],
            },
        )+];

        impl Config {
            /// The value of `key`, or `None` when it is absent (or no key).
            pub fn get(&self, key: &str) -> Option<Value> {
                $($(
                    if key == concat!(stringify!($table), ".", stringify!($key)) {
                        return self.$table.$key.to_value();
                    }
                )+)+
                None
            }

            /// Sets `key` from a TOML value.
            ///
            /// # Errors
            /// A value of the wrong type.
            pub fn set_value(&mut self, key: &KeyInfo, value: &Value) -> Result<(), WrongType> {
                $($(
                    if key.path == concat!(stringify!($table), ".", stringify!($key)) {
                        self.$table.$key = <$kind as Setting>::from_value(value).ok_or(WrongType)?;
                        return Ok(());
                    }
                )+)+
                Err(WrongType)
            }

            /// Sets `key` from a text of the environment or the command line.
            ///
            /// # Errors
            /// A text that is no value of the key's type.
            pub fn set_text(&mut self, key: &KeyInfo, text: &str) -> Result<(), WrongType> {
                $($(
                    if key.path == concat!(stringify!($table), ".", stringify!($key)) {
                        self.$table.$key = <$kind as Setting>::from_text(text).ok_or(WrongType)?;
                        return Ok(());
                    }
                )+)+
                Err(WrongType)
            }

            /// Puts the default back.
            pub fn reset(&mut self, key: &str) {
                $($(
                    if key == concat!(stringify!($table), ".", stringify!($key)) {
                        self.$table.$key = $default;
                    }
                )+)+
            }
        }
    };
}

tables! {
    /// The model that is fine-tuned.
    model: ModelTable {
        /// A Hugging Face folder, a `.gguf` file, or a pinned package as `pip:NAME`. Required.
        path | "name": ModelSpec = ModelSpec::default(), "\"path/to/model\"";
    }

    /// The rows and how they become tokens.
    data: DataTable {
        /// JSONL file (or a JSON array), or a folder with `train.jsonl` and perhaps `valid.jsonl`. Required.
        train | "path": PathBuf = PathBuf::new(), "\"data/train.jsonl\"";
        /// Rows for validation. Without it, and without `valid_fraction`, nothing is validated.
        valid: Option<PathBuf> = None, "\"data/valid.jsonl\"";
        /// Share of the training rows, drawn by `train.seed`, that is kept for validation instead of `valid`.
        valid_fraction | "val_fraction": f64 = 0.0;
        /// Shape of the rows; `auto` goes by each row's keys.
        format: Format = Format::Auto;
        /// Longest row in tokens. A longer row loses its end; a longer preference row loses the start of its prompt.
        max_seq_length | "max_length" | "sequence_len": u64 = 2048;
        /// Which tokens of a conversation are trained. A message's own `trainable` or `weight` goes before it.
        train_on: TrainOn = TrainOn::AllAssistant;
        /// The same in mlx-lm's spelling: true is `all_assistant`, false is `all`.
        mask_prompt: Option<bool> = None, "true";
        /// Order of the rows in an epoch; drawn anew each epoch from `train.seed`, except `sequential`.
        order: Order = Order::Shuffle;
        /// End every row with the model's end token, unless the chat template has ended it already.
        append_eos | "eos": bool = true;
        /// Token that ends a row, where the model's own is not the right one. It must be in the vocabulary.
        eos_token: Option<String> = None, "\"<|im_end|>\"";
        /// Whether plain `prompt`, `completion`, `chosen` and `rejected` strings go through the chat template as a
        /// user's and an assistant's turn; `never` joins them as they are.
        chat_template: ChatTemplateUse = ChatTemplateUse::Auto;
    }

    /// What is optimised.
    method: MethodTable {
        /// `sft` needs conversations, completions or texts; `orpo` needs preference rows.
        name: MethodName = MethodName::Sft;
        /// ORPO: weight of the odds-ratio term.
        lambda | "orpo_lambda" | "beta": f64 = 0.1;
        /// ORPO: tokens of the likelihood term, `full` for prompt and chosen response, `response` for the latter only.
        sft_scope: SftScope = SftScope::Full;
    }

    /// The adapter: low-rank updates of linear layers.
    lora: LoraTable {
        /// Rank of the update.
        rank | "r" | "lora_r": u64 = 8;
        /// Factor of the update, as in mlx-lm.
        scale: f64 = 20.0;
        /// The same as in PEFT: `scale = alpha / rank`. Excludes `scale`.
        alpha | "lora_alpha": Option<f64> = None, "16.0";
        /// Number of layers with an adapter, counted from the last; -1 for all.
        num_layers: i64 = -1;
        /// Names of the linear layers in a block that get an adapter.
        targets | "target_modules" | "keys": Vec<String> = DEFAULT_TARGETS.map(str::to_owned).to_vec();
    }

    /// The optimizer. Its state is f32.
    optimizer: OptimizerTable {
        /// `adamw` decays weights beside the gradient; `adam` has no decay.
        name: OptimizerName = OptimizerName::Adamw;
        /// Peak learning rate.
        learning_rate | "lr": f64 = 1e-5;
        /// Decay of the first and of the second moment.
        betas: (f64, f64) = (0.9, 0.999);
        /// Added to the root of the second moment.
        eps: f64 = 1e-8;
        /// AdamW: decay per unit of learning rate.
        weight_decay: f64 = 0.01;
        /// Divide the moments by `1 - beta^t`. mlx-lm does not.
        bias_correction: bool = true;
    }

    /// The learning rate over the run, in optimizer steps.
    schedule: ScheduleTable {
        /// What follows the warm-up.
        name: ScheduleName = ScheduleName::Constant;
        /// Steps in which the rate rises from 0 to its peak.
        warmup | "warmup_steps": u64 = 0;
        /// Cosine and linear: last rate as a share of the peak.
        min_lr_ratio: f64 = 0.1;
    }

    /// The loop.
    train: TrainTable {
        /// Optimizer steps. Excludes `epochs`.
        iters | "max_steps": u64 = 1000;
        /// Passes over the data instead; may be a fraction.
        epochs | "num_train_epochs" | "num_epochs": Option<f64> = None, "1.0";
        /// Rows (or pairs) per forward pass.
        batch_size | "per_device_train_batch_size" | "micro_batch_size": u64 = 4;
        /// Forward passes per optimizer step; their gradients are weighted by tokens.
        grad_accumulation_steps | "gradient_accumulation_steps": u64 = 1;
        /// Gradients of a larger global norm are scaled down to it; 0 turns it off.
        max_grad_norm | "grad_clip": f64 = 1.0;
        /// Seed of the adapter's start, the order of rows and the validation split.
        seed: u64 = 0;
        /// Dtype of the forward and backward pass; losses, adapters and optimizer are f32 in any case.
        compute_dtype: ComputeDtype = ComputeDtype::Auto;
        /// A step whose loss or gradient is not finite is skipped; this many in a row stop the run.
        max_nonfinite_steps: u64 = 10;
    }

    /// Validation.
    eval: EvalTable {
        /// Validate before the first step, every so many steps, and after the last; 0 turns it off.
        every | "steps_per_eval" | "eval_steps": u64 = 200;
        /// Batches per validation; 0 for all.
        batches | "val_batches": u64 = 25;
    }

    /// Progress lines and metrics.
    report: ReportTable {
        /// Report every so many steps.
        every | "steps_per_report" | "logging_steps": u64 = 10;
    }

    /// Saved states.
    checkpoint: CheckpointTable {
        /// Save every so many steps, besides at the end; 0 saves at the end only.
        every | "save_every" | "save_steps": u64 = 100;
        /// Keep this many of the numbered ones; 0 keeps all.
        save_total_limit: u64 = 0;
    }

    /// Where results go.
    output: OutputTable {
        /// Folder for the adapter, the checkpoints, the metrics and the resolved configuration.
        dir | "adapter_path": PathBuf = PathBuf::from("adapters");
        /// Replace what an earlier run left in the folder.
        overwrite: bool = false;
        /// Go on with the run that the folder holds.
        resume: bool = false;
    }

    /// Answers before and after the training, to see its effect.
    summary: SummaryTable {
        /// Prompts that the model answers before and after.
        prompts: Vec<String> = Vec::new(), "[\"Why is the sky blue?\"]";
        /// Longest answer in tokens.
        max_tokens: u64 = 64;
    }
}

/// The seven projections of a Llama block.
pub const DEFAULT_TARGETS: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

impl LoraTable {
    /// Factor of the update: `alpha / rank` when alpha is set, else `scale`.
    pub fn effective_scale(&self) -> f64 {
        self.alpha.map_or(self.scale, |alpha| alpha / self.rank as f64)
    }
}

/// All keys, in order.
pub fn keys() -> impl Iterator<Item = &'static KeyInfo> {
    TABLES.iter().flat_map(|table| table.keys)
}

/// The table of this name.
pub fn table(name: &str) -> Option<&'static TableInfo> {
    TABLES.iter().find(|table| table.name == name)
}

impl TableInfo {
    /// The key of this name or alias.
    pub fn key(&self, name: &str) -> Option<&'static KeyInfo> {
        self.keys.iter().find(|key| key.name == name || key.aliases.contains(&name))
    }
}
