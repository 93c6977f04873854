//! Which run this is: a hash of everything that decides its numbers, so that only the same run is resumed.

use sha2::{Digest, Sha256};

use crate::base::{ModelText, model_error};
use crate::config::Resolved;
use crate::config::schema::keys;
use crate::data::{Dataset, Example, Examples};
use crate::error::Result;

/// Tables whose keys decide the numbers. How long a run is does not: it may be prolonged.
const TABLES: [&str; 7] = ["model", "data", "method", "lora", "optimizer", "schedule", "train"];
const FREE: [&str; 5] = ["train.iters", "train.epochs", "data.train", "data.valid", "train.max_nonfinite_steps"];

/// SHA-256 in hexadecimal over the settings, the tokenizer and the encoded training rows.
///
/// # Errors
/// A tokenizer that cannot be written down.
pub fn of(resolved: &Resolved, text: &ModelText, data: &Dataset) -> Result<String> {
    let mut hash = Sha256::new();
    for key in keys().filter(|key| TABLES.contains(&key.table) && !FREE.contains(&key.path)) {
        if let Some(value) = resolved.config.get(key.path) {
            hash.update(format!("{} = {value}\n", key.path));
        }
    }
    hash.update(text.tokenizer().fingerprint().map_err(|error| model_error("describe the tokenizer", error))?);
    let mut add = |example: &Example| {
        example.ids.iter().zip(&example.mask).for_each(|(id, trained)| {
            hash.update(id.to_le_bytes());
            hash.update([u8::from(*trained)]);
        });
        hash.update([0xff; 5]);
    };
    match &data.train {
        Examples::Sft(examples) => examples.iter().for_each(&mut add),
        Examples::Preference(pairs) => pairs.iter().for_each(|pair| {
            add(&pair.chosen);
            add(&pair.rejected);
        }),
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
