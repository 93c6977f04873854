//! A folder with a small model, rows, a configuration, and the program to run there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Config of the folder; tests lay `--set` over it.
pub const CONFIG: &str = r#"[model]
path = "model"

[data]
train = "train.jsonl"

[optimizer]
learning_rate = 1e-3

[train]
iters = 6
batch_size = 2

[eval]
every = 0

[report]
every = 1

[output]
dir = "out"
"#;

const SPECIAL: [&str; 5] = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"];

const CHAT_TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
    {{ message.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// A folder where the program runs; it goes when this is dropped.
pub struct Workshop {
    dir: TempDir,
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status; -1 when a signal ended it.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Workshop {
    /// With the dense model and ten conversations.
    pub fn new() -> Self {
        Self::with_model("llama_tied")
    }

    /// With the model of a golden folder.
    pub fn with_model(golden: &str) -> Self {
        let shop = Self { dir: tempfile::tempdir().unwrap() };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(golden);
        for name in ["config.json", "model.safetensors"] {
            fs::create_dir_all(shop.path("model")).unwrap();
            fs::copy(source.join(name), shop.path("model").join(name)).unwrap();
        }
        shop.write("model/tokenizer.json", &tokenizer().to_string());
        shop.write_tokenizer_config(Some(CHAT_TEMPLATE));
        shop.write("train.jsonl", &conversations(10));
        shop.write("run.toml", CONFIG);
        shop
    }

    /// The tokenizer's configuration with this chat template.
    pub fn write_tokenizer_config(&self, template: Option<&str>) {
        let config = json!({"bos_token": "<s>", "eos_token": "<|im_end|>", "chat_template": template});
        self.write("model/tokenizer_config.json", &config.to_string());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap()
    }

    /// Names in a folder, sorted.
    pub fn list(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program, to be run in the folder without settings of the environment.
    pub fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mlx-train"));
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("TRAINER_") || text == "RUST_LOG" {
                command.env_remove(&name);
            }
        }
        command.current_dir(self.dir.path());
        command
    }

    /// Runs the program.
    pub fn run(&self, args: &[&str]) -> Outcome {
        Outcome::of(self.program().args(args).output().unwrap())
    }

    /// `train run.toml` with more arguments.
    pub fn train(&self, args: &[&str]) -> Outcome {
        self.run(&[&["train", "run.toml"], args].concat())
    }

    /// Records of `out/metrics.jsonl`.
    pub fn metrics(&self) -> Vec<Map<String, Value>> {
        self.metrics_of("out")
    }

    /// Records of a run's metrics.
    pub fn metrics_of(&self, folder: &str) -> Vec<Map<String, Value>> {
        let text = self.text(&format!("{folder}/metrics.jsonl"));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Records of a run's metrics without what differs between two equal runs: time and memory.
    pub fn figures(&self, folder: &str) -> Vec<Map<String, Value>> {
        let mut records = self.metrics_of(folder);
        for record in &mut records {
            for key in ["iterations_per_second", "tokens_per_second", "peak_memory", "val_time"] {
                record.shift_remove(key);
            }
        }
        records
    }
}

impl Outcome {
    pub fn of(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// This, after it has ended well.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.status, 0, "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts exit status and message. The message is standard error without the notes of a run that began.
    #[track_caller]
    pub fn failed(&self, status: i32, message: &str) {
        let start = self.stderr.find("error: ").unwrap_or(0);
        assert_eq!((self.status, self.stderr[start..].trim_end()), (status, message), "{}", self.stdout);
    }

    /// The `Iter` lines.
    pub fn iterations(&self) -> Vec<&str> {
        self.stdout.lines().filter(|line| line.starts_with("Iter ")).collect()
    }
}

/// Rows with a question and an answer, one a line.
pub fn conversations(count: usize) -> String {
    let row = |number: usize| {
        json!({"messages": [
            {"role": "user", "content": format!("say {number}")},
            {"role": "assistant", "content": format!("I say {number}, {}.", "so ".repeat(number % 4))},
        ]})
    };
    lines((0..count).map(row))
}

/// Rows with a prompt and two responses, one a line.
pub fn preferences(count: usize) -> String {
    let row = |number: usize| json!({"prompt": format!("say {number}"), "chosen": format!("I say {number}."), "rejected": "No, never."});
    lines((0..count).map(row))
}

/// JSONL.
pub fn lines(rows: impl Iterator<Item = Value>) -> String {
    rows.map(|row| format!("{row}\n")).collect()
}

/// A byte-level tokenizer of the printable letters, in Hugging Face's format.
pub fn tokenizer() -> Value {
    let letters = ('!'..='~').map(String::from).chain(["Ġ", "Ċ", "th", "he"].map(str::to_owned));
    let tokens = SPECIAL.map(str::to_owned).into_iter().chain(letters);
    let vocabulary: Map<String, Value> = tokens.enumerate().map(|(id, token)| (token, json!(id))).collect();
    let added = |(id, token)| {
        json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    };
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": SPECIAL.iter().enumerate().map(added).collect::<Vec<_>>(),
        "normalizer": null,
        "pre_tokenizer": bytes,
        "post_processor": null,
        "decoder": bytes,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": vocabulary, "merges": ["t h", "h e"],
        },
    })
}
