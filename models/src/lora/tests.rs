use std::collections::BTreeMap;

use super::*;
use crate::tiny_llama::{assert_near, model, row, values};

fn spec(targets: &[&str]) -> LoraSpec {
    LoraSpec {
        rank: 4,
        scale: 2.0,
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        num_layers: -1,
    }
}

fn refusal(spec: &LoraSpec) -> String {
    Adapter::new(&model(), spec, 0).err().expect("a refusal").to_string()
}

fn paths(adapter: &Adapter) -> Vec<&str> {
    adapter.targets().iter().map(|target| target.path.as_str()).collect()
}

#[test]
fn a_target_that_matches_nothing_is_refused_with_the_names_there_are() {
    let known = "q_proj, k_proj, v_proj, o_proj, gate_proj, down_proj, up_proj";
    assert_eq!(
        refusal(&spec(&["q_proj", "qkv_proj"])),
        format!("adapter: target `qkv_proj` matches no linear of the model (it has: {known})")
    );
    // Whole components only.
    assert_eq!(
        refusal(&spec(&["proj"])),
        format!("adapter: target `proj` matches no linear of the model (it has: {known})")
    );
    assert_eq!(refusal(&spec(&[])), "adapter: no targets are given");
}

#[test]
fn ranks_and_layer_counts_that_cannot_be_are_refused() {
    let wrong = |rank, num_layers| refusal(&LoraSpec { rank, num_layers, ..spec(&["q_proj"]) });
    assert_eq!(wrong(0, -1), "adapter: rank is 0, wanted at least 1");
    assert_eq!(
        wrong(33, -1),
        "adapter: rank is 33, wanted at most the greater of [32, 32], the sizes of `model.layers.0.self_attn.q_proj`"
    );
    assert_eq!(wrong(4, 3), "adapter: num_layers is 3, but the model has 2 layers (-1 adapts all)");
    assert_eq!(wrong(4, 0), "adapter: num_layers is 0, but the model has 2 layers (-1 adapts all)");
}

#[test]
fn targets_are_chosen_by_the_end_of_their_path_and_by_layer() {
    let all = Adapter::new(&model(), &spec(&["v_proj", "self_attn.q_proj", "mlp.down_proj"]), 0).unwrap();
    assert_eq!(
        paths(&all),
        [
            "model.layers.0.mlp.down_proj",
            "model.layers.0.self_attn.q_proj",
            "model.layers.0.self_attn.v_proj",
            "model.layers.1.mlp.down_proj",
            "model.layers.1.self_attn.q_proj",
            "model.layers.1.self_attn.v_proj",
        ]
    );
    // Rank 4 on [64 → 32], [32 → 32] and [32 → 16], in two layers.
    assert_eq!(all.parameter_count(), 2 * 4 * (96 + 64 + 48));
    let last = Adapter::new(&model(), &LoraSpec { num_layers: 1, ..spec(&["v_proj"]) }, 0).unwrap();
    assert_eq!(paths(&last), ["model.layers.1.self_attn.v_proj"]);
    let exact = Adapter::new(&model(), &spec(&["model.layers.0.mlp.up_proj"]), 0).unwrap();
    assert_eq!(paths(&exact), ["model.layers.0.mlp.up_proj"]);
}

#[test]
fn a_fresh_adapter_changes_nothing_and_is_drawn_within_its_bound() {
    let model = model();
    let adapter = Adapter::new(&model, &spec(&["q_proj", "down_proj"]), 5).unwrap();
    let tokens = row(&[1, 5, 9, 3]);
    let base = model.forward(&tokens, None).unwrap();
    let adapted = adapter.apply(&model).unwrap();
    assert_near(&adapted.forward(&tokens, None).unwrap(), &base, 0.0);
    for (target, a) in adapter.targets().iter().zip(adapter.parameters()) {
        let bound = 1.0 / (target.in_features as f32).sqrt();
        let drawn = values(a);
        assert!(drawn.iter().all(|value| value.abs() <= bound));
        // 128 or 256 draws: the largest lies near the bound unless the scale is wrong.
        assert!(drawn.iter().fold(0.0f32, |most, value| most.max(value.abs())) > 0.9 * bound);
    }
    let again = Adapter::new(&model, &spec(&["q_proj", "down_proj"]), 5).unwrap();
    let other = Adapter::new(&model, &spec(&["q_proj", "down_proj"]), 6).unwrap();
    assert_eq!(values(&adapter.parameters()[0]), values(&again.parameters()[0]));
    assert_ne!(values(&adapter.parameters()[0]), values(&other.parameters()[0]));
}

#[test]
fn the_adapted_linear_adds_scale_times_x_a_b() {
    let model = model();
    let adapter = Adapter::new(&model, &LoraSpec { num_layers: 1, ..spec(&["v_proj"]) }, 1).unwrap();
    let b = random::normal(&[4, 16], Dtype::Float32, 0.0, 1.0, Some(&random::key(9).unwrap())).unwrap();
    let a = adapter.parameters()[0].clone();
    let adapted = adapter.install(&model, &[a.clone(), b.clone()]).unwrap();
    let find = |model: &Model| {
        let linears = model.linears();
        let (_, linear) = linears.into_iter().find(|(path, _)| path == "model.layers.1.self_attn.v_proj").unwrap();
        linear.clone()
    };
    let x = random::normal(&[3, 32], Dtype::Float32, 0.0, 1.0, Some(&random::key(2).unwrap())).unwrap();
    let product = ops::matmul(&ops::matmul(&x, &a).unwrap(), &b).unwrap();
    let want = (find(&model).forward(&x).unwrap() + (&product * 2.0).unwrap()).unwrap();
    assert_near(&find(&adapted).forward(&x).unwrap(), &want, 1e-5);
    assert!(find(&model).lora.is_none(), "the base stays as it was");
}

#[test]
fn parameters_of_another_number_or_shape_are_refused() {
    let adapter = Adapter::new(&model(), &spec(&["q_proj"]), 0).unwrap();
    let message = "adapter: the new parameters do not have the shapes of the adapter's";
    let mut parameters = adapter.parameters().to_vec();
    parameters.swap(0, 2);
    assert_eq!(adapter.with_parameters(parameters.clone()).err().unwrap().to_string(), message);
    parameters.pop();
    assert_eq!(adapter.with_parameters(parameters.clone()).err().unwrap().to_string(), message);
    assert_eq!(
        adapter.install(&model(), &parameters).err().unwrap().to_string(),
        "adapter: 3 parameters for 2 targets"
    );
}

/// What loading an adapter file with these changed tensors gives.
fn load(change: impl FnOnce(&mut BTreeMap<String, Array>)) -> Result<Adapter> {
    let model = model();
    let adapter = Adapter::new(&model, &spec(&["q_proj", "v_proj"]), 3).unwrap();
    let mut tensors = adapter.tensors();
    change(&mut tensors);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("adapters.safetensors");
    io::save_safetensors(&file, tensors.iter(), None).unwrap();
    Adapter::load(&model, &file, 2.0)
}

fn load_refusal(change: impl FnOnce(&mut BTreeMap<String, Array>)) -> String {
    load(change).err().expect("a refusal").to_string()
}

fn zeros(shape: &[i32]) -> Array {
    ops::zeros(shape, Dtype::Float32).unwrap()
}

const Q: &str = "model.layers.0.self_attn.q_proj";

#[test]
fn a_saved_adapter_comes_back_bit_for_bit() {
    let made = Adapter::new(&model(), &spec(&["q_proj", "v_proj"]), 3).unwrap();
    let back = load(|_| ()).unwrap();
    assert_eq!(back.targets(), made.targets());
    assert_eq!(back.parameter_names()[0], format!("{Q}.lora_a"));
    for (back, made) in back.parameters().iter().zip(made.parameters()) {
        assert_eq!(values(back), values(made));
    }
}

#[test]
fn half_a_pair_is_refused_on_either_side() {
    let text = load_refusal(|tensors| drop(tensors.remove(&format!("{Q}.lora_b"))));
    assert_eq!(text, format!("adapter: `{Q}` has lora_a but no lora_b"));
    let text = load_refusal(|tensors| drop(tensors.remove(&format!("{Q}.lora_a"))));
    assert_eq!(text, format!("adapter: tensor `{Q}.lora_b` belongs to no lora_a/lora_b pair"));
}

#[test]
fn a_pair_of_another_shape_is_refused_with_the_wanted_one() {
    let wanted = "wanted [32, r] and [r, 32]: was the adapter made for another base?";
    let text = load_refusal(|tensors| drop(tensors.insert(format!("{Q}.lora_a"), zeros(&[31, 4]))));
    assert_eq!(text, format!("adapter: `{Q}`: lora_a is [31, 4] and lora_b [4, 32], {wanted}"));
    let text = load_refusal(|tensors| drop(tensors.insert(format!("{Q}.lora_b"), zeros(&[5, 32]))));
    assert_eq!(text, format!("adapter: `{Q}`: lora_a is [32, 4] and lora_b [5, 32], {wanted}"));
    let text = load_refusal(|tensors| drop(tensors.insert(format!("{Q}.lora_a"), zeros(&[32]))));
    assert_eq!(text, format!("adapter: `{Q}`: lora_a is [32] and lora_b [4, 32], {wanted}"));
}

#[test]
fn foreign_tensors_and_targets_the_model_lacks_are_refused() {
    let text = load_refusal(|tensors| drop(tensors.insert(format!("{Q}.magnitude"), zeros(&[32]))));
    assert_eq!(text, format!("adapter: tensor `{Q}.magnitude` belongs to no lora_a/lora_b pair"));
    let other = "model.layers.7.self_attn.q_proj";
    let text = load_refusal(|tensors| {
        tensors.insert(format!("{other}.lora_a"), zeros(&[32, 4]));
        tensors.insert(format!("{other}.lora_b"), zeros(&[4, 32]));
    });
    assert_eq!(text, format!("adapter: the model has no linear `{other}`: was the adapter made for another base?"));
    let text = load_refusal(BTreeMap::clear);
    assert!(text.ends_with("adapters.safetensors holds no lora_a/lora_b pair"), "{text}");
}

#[test]
fn an_adapter_value_that_is_not_finite_is_named() {
    let text = load_refusal(|tensors| {
        let bad = (&zeros(&[32, 4]) + f64::NAN).unwrap();
        tensors.insert(format!("{Q}.lora_a"), bad);
    });
    assert!(text.ends_with(&format!("tensor `{Q}.lora_a` holds NaN or infinite values")), "{text}");
}
