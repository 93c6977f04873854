//! Runs whose numbers break.

use crate::fixture::Workshop;

fn values(shop: &Workshop, name: &str) -> Vec<f32> {
    let bytes = shop.read(name);
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut names = tensors.names();
    names.sort_unstable();
    let values = names.iter().flat_map(|name| tensors.tensor(name).unwrap().data().as_chunks::<4>().0);
    values.map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

#[test]
fn a_run_that_explodes_skips_counts_stops_and_saves_its_last_good_state() {
    let shop = Workshop::new();
    let outcome = shop.train(&["--learning-rate", "1e30", "--iters", "20", "--set", "train.max_nonfinite_steps=3"]);
    outcome.failed(
        1,
        "error: step 4: found loss NaN and gradient norm NaN, not finite for 3 steps in a row, the last on \
         train.jsonl:1, train.jsonl:10, wanted finite numbers\n\n\
         hint: the last good state is saved; lower optimizer.learning_rate, or look at those rows",
    );
    let state = shop.json("out/trainer_state.json");
    assert_eq!((&state["step"], &state["applied_steps"], &state["skipped_steps"]), (&4.into(), &0.into(), &3.into()));
    let records = shop.metrics();
    assert_eq!(records.len(), 4);
    assert!(records[3]["train_loss"].is_null() && records[3]["grad_norm"].is_null());
    assert_eq!(
        (&records[3]["skipped_steps"], &records[3]["trained_tokens"]),
        (&3.into(), &records[0]["trained_tokens"])
    );
    // The update that exploded is taken back: what is saved is the start.
    let saved = values(&shop, "out/adapters.safetensors");
    assert_eq!(saved.len(), 16384);
    assert!(saved.iter().all(|value| value.abs() <= 0.125), "A is drawn from ±1/√64, B is zero");
    let outcome = shop.run(&["generate", "out", "-p", "hi", "-m", "4"]).succeeded();
    assert_eq!(outcome.stdout, shop.run(&["generate", "--model", "model", "-p", "hi", "-m", "4"]).succeeded().stdout);
}

#[test]
fn an_update_that_is_not_finite_is_never_saved() {
    let shop = Workshop::new();
    shop.train(&["--iters", "2"]).succeeded();
    let before = shop.read("out/adapters.safetensors");
    let outcome = shop.train(&["--iters", "1", "--learning-rate", "1e39", "--adapter-path", "other"]);
    outcome.failed(
        1,
        "error: step 1: model.layers.0.mlp.down_proj.lora_a: found NaN, wanted finite values\n\n\
         hint: nothing was written, an earlier save is untouched; lower optimizer.learning_rate",
    );
    assert_eq!(shop.list("other"), ["config.toml", "metrics.jsonl"]);
    assert_eq!(shop.read("out/adapters.safetensors"), before);
}

#[test]
fn a_first_gradient_of_zero_is_an_error() {
    let shop = Workshop::new();
    // Above zero even in f32, but its products are not: the adapter has no effect.
    shop.train(&["--set", "lora.scale=1e-44"]).failed(
        1,
        "error: step 1: found a gradient of zero in every parameter, wanted one that is not zero\n\n\
         hint: nothing would be learned: look at the rows with `mlx-train inspect`, and at lora.scale",
    );
    assert_eq!(shop.list("out"), ["config.toml", "metrics.jsonl"]);
}
