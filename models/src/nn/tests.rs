use mlx_rs_core::{Array, Dtype, ops, random, transforms};
use serde_json::json;

use super::*;
use crate::tiny_llama::{assert_near, config, values};

fn normal(shape: &[i32], seed: u64) -> Array {
    random::normal(shape, Dtype::Float32, 0.0, 1.0, Some(&random::key(seed).unwrap())).unwrap()
}

fn array(values: &[f32], shape: &[i32]) -> Array {
    Array::from_slice(values, shape).unwrap()
}

#[test]
fn the_norm_divides_by_the_root_mean_square_and_multiplies_by_the_gain() {
    let norm = RmsNorm { weight: array(&[1.0, 2.0], &[2]), eps: 0.0 };
    // The mean square of 3 and 4 is 12.5.
    let root = 12.5f32.sqrt();
    assert_near(&norm.forward(&array(&[3.0, 4.0], &[1, 2])).unwrap(), &array(&[3.0 / root, 8.0 / root], &[1, 2]), 1e-6);
    let eps = RmsNorm { weight: array(&[1.0, 1.0], &[2]), eps: 12.5 };
    assert_near(&eps.forward(&array(&[3.0, 4.0], &[1, 2])).unwrap(), &array(&[0.6, 0.8], &[1, 2]), 1e-6);
}

/// Whether the query at a position sees the key at another, both counted from the first key.
type Sees = dyn Fn(usize, usize) -> bool;

/// Attention of one head in plain loops.
fn plain_attention(q: &[f32], k: &[f32], v: &[f32], width: usize, sees: &Sees) -> Vec<f32> {
    let (queries, keys) = (q.len() / width, k.len() / width);
    let mut out = vec![0.0; q.len()];
    for i in 0..queries {
        let position = i + keys - queries;
        let score = |j: usize| (0..width).map(|d| q[i * width + d] * k[j * width + d]).sum::<f32>().exp();
        let seen: Vec<usize> = (0..keys).filter(|j| sees(position, *j)).collect();
        let mass: f32 = seen.iter().map(|j| score(*j)).sum();
        for j in seen {
            (0..width).for_each(|d| out[i * width + d] += score(j) / mass * v[j * width + d]);
        }
    }
    out
}

#[test]
fn each_mask_shows_a_query_the_keys_it_names() {
    let (queries, keys, width) = (4, 6, 8);
    let (q, k, v) =
        (normal(&[1, 1, queries, width], 1), normal(&[1, 1, keys, width], 2), normal(&[1, 1, keys, width], 3));
    fn even(j: usize) -> bool {
        j.is_multiple_of(2)
    }
    let flags: Vec<bool> = (0..queries * keys).map(|at| even((at % keys) as usize)).collect();
    let masks: [(Mask, &Sees); 5] = [
        (Mask::None, &|_, _| true),
        (Mask::Causal, &|i, j| j <= i),
        (Mask::CausalWindow(2), &|i, j| j <= i && i - j < 2),
        (Mask::CausalWindow(6), &|i, j| j <= i),
        (Mask::Array(Array::from_slice(&flags, &[queries, keys]).unwrap()), &|_, j| even(j)),
    ];
    for (mask, sees) in masks {
        let got = attention(&q, &k, &v, 1.0, &mask).unwrap();
        let want = plain_attention(&values(&q), &values(&k), &values(&v), width as usize, sees);
        assert_near(&got, &array(&want, &[1, 1, queries, width]), 1e-5);
    }
}

#[test]
fn a_single_query_under_a_window_sees_the_window_only() {
    let (q, k, v) = (normal(&[1, 1, 1, 8], 1), normal(&[1, 1, 6, 8], 2), normal(&[1, 1, 6, 8], 3));
    let got = attention(&q, &k, &v, 1.0, &Mask::CausalWindow(3)).unwrap();
    let want = plain_attention(&values(&q), &values(&k), &values(&v), 8, &|_, j| j >= 3);
    assert_near(&got, &array(&want, &[1, 1, 1, 8]), 1e-5);
}

#[test]
fn heads_are_split_and_merged_in_place() {
    let x = ops::arange(0.0, 24.0, 1.0, Dtype::Float32).unwrap().reshape(&[1, 3, 8]).unwrap();
    let heads = split_heads(&x, 2).unwrap();
    assert_eq!(heads.shape(), [1, 2, 3, 4]);
    // The second head of the first token starts at value 4.
    assert_eq!(values(&heads)[12..16], [4.0, 5.0, 6.0, 7.0]);
    assert_eq!(values(&merge_heads(&heads).unwrap()), values(&x));
}

#[test]
fn a_cache_keeps_every_position_while_it_grows() {
    let (k, v) = (normal(&[1, 2, 600, 4], 1), normal(&[1, 2, 600, 4], 2));
    let part = |x: &Array, from: i32, to: i32| ops::slice(x, &[0, 0, from, 0], &[1, 2, to, 4], &[1, 1, 1, 1]).unwrap();
    let mut cache = KvCache::default();
    let mut at = 0;
    // Within the first buffer, across its end at 256, in one leap beyond 512, and one by one.
    for width in [250, 10, 300, 1, 1] {
        let (keys, values_so_far) = cache.update(&part(&k, at, at + width), &part(&v, at, at + width)).unwrap();
        at += width;
        assert_eq!(cache.offset(), at);
        assert_near(&keys, &part(&k, 0, at), 0.0);
        assert_near(&values_so_far, &part(&v, 0, at), 0.0);
    }
}

#[test]
fn copies_of_a_cache_go_their_own_ways() {
    let mut first = KvCache::default();
    let shared = normal(&[1, 1, 2, 4], 1);
    first.update(&shared, &shared).unwrap();
    let mut second = first.clone();
    let (a, b) = (normal(&[1, 1, 1, 4], 2), normal(&[1, 1, 1, 4], 3));
    let (keys_a, _) = first.update(&a, &a).unwrap();
    let (keys_b, _) = second.update(&b, &b).unwrap();
    assert_near(&keys_a, &ops::concatenate(&[shared.clone(), a], 2).unwrap(), 0.0);
    assert_near(&keys_b, &ops::concatenate(&[shared, b], 2).unwrap(), 0.0);
}

#[test]
fn a_cache_that_refused_its_input_still_holds_what_it_held() {
    let mut cache = KvCache::default();
    let kept = normal(&[1, 2, 3, 4], 1);
    cache.update(&kept, &kept).unwrap();
    let other_heads = normal(&[1, 3, 1, 4], 2);
    assert!(cache.update(&other_heads, &other_heads).is_err());
    assert_eq!(cache.offset(), 3);
    let next = normal(&[1, 2, 1, 4], 3);
    let (keys, _) = cache.update(&next, &next).unwrap();
    assert_near(&keys, &ops::concatenate(&[kept, next], 2).unwrap(), 0.0);
}

fn quantised(weight: &Array, bits: i32) -> QuantizedMatrix {
    let mut parts = ops::quantize(weight, Some(32), Some(bits), "affine").unwrap().into_iter();
    let mut next = || parts.next().unwrap();
    let (weight, scales, biases) = (next(), next(), next());
    QuantizedMatrix::new(QuantizedParts { weight, scales, biases: Some(biases), group_size: 32, bits, mode: "affine" })
        .unwrap()
}

#[test]
fn a_quantised_product_and_its_gradient_are_those_of_the_dense_matrix() {
    for bits in [2, 4, 8] {
        let packed = quantised(&normal(&[16, 64], 1), bits);
        assert_eq!((packed.in_features(), packed.out_features()), (64, 16));
        let dense = packed.parts().dequantize().unwrap();
        let (x, weights) = (normal(&[3, 64], 2), normal(&[3, 16], 3));
        let run = |matrix: Matrix| {
            let loss =
                |x: &[Array]| Ok(vec![ops::sum(&ops::multiply(&matrix.multiply(&x[0])?, &weights)?, None, false)?]);
            let (_, gradients) = transforms::value_and_grad(loss, &[0], std::slice::from_ref(&x)).unwrap();
            (matrix.multiply(&x).unwrap(), gradients[0].clone())
        };
        let (product, gradient) = run(Matrix::Quantized(packed));
        let (dense_product, dense_gradient) = run(Matrix::Dense(dense));
        assert_near(&product, &dense_product, 1e-4);
        assert_near(&gradient, &dense_gradient, 1e-4);
    }
}

#[test]
fn a_quantised_product_is_near_mlxs_own() {
    let packed = quantised(&normal(&[16, 64], 1), 4);
    let (parts, x) = (packed.parts().clone(), normal(&[3, 64], 2));
    let biases = parts.biases.as_ref();
    let own =
        ops::quantized_matmul(&x, &parts.weight, &parts.scales, biases, true, Some(32), Some(4), "affine").unwrap();
    assert_near(&packed.multiply(&x).unwrap(), &own, 1e-4);
}

#[test]
fn a_quantised_embedding_unpacks_the_rows_it_is_asked_for() {
    let packed = quantised(&normal(&[16, 32], 1), 4);
    let dense = packed.parts().dequantize().unwrap();
    let ids = Array::from_slice(&[3i32, 0, 15, 3], &[2, 2]).unwrap();
    let rows = Embedding(Matrix::Quantized(packed)).lookup(&ids).unwrap();
    assert_eq!(rows.shape(), [2, 2, 32]);
    assert_near(&rows, &Embedding(Matrix::Dense(dense)).lookup(&ids).unwrap(), 0.0);
}

#[test]
fn a_bias_is_added_by_dense_and_quantised_linears() {
    let packed = quantised(&normal(&[16, 32], 1), 4);
    let dense = packed.parts().dequantize().unwrap();
    let (x, bias) = (normal(&[3, 32], 2), normal(&[16], 3));
    let want = (ops::matmul(&x, &ops::transpose(&dense, None).unwrap()).unwrap() + &bias).unwrap();
    for weight in [Matrix::Dense(dense), Matrix::Quantized(packed)] {
        assert_near(&Linear::new(weight, Some(bias.clone())).forward(&x).unwrap(), &want, 1e-5);
    }
}

/// Rotates pair `i` and `i + width/2` of a head of `width` at `position`, with the angle `position·angle(i)`.
fn rotated(x: &[f32], position: f64, angle: impl Fn(usize) -> f64) -> Vec<f32> {
    let half = x.len() / 2;
    let mut out = vec![0.0; x.len()];
    for i in 0..half {
        let (sin, cos) = (position * angle(i)).sin_cos();
        let (a, b) = (f64::from(x[i]), f64::from(x[i + half]));
        (out[i], out[i + half]) = ((a * cos - b * sin) as f32, (a * sin + b * cos) as f32);
    }
    out
}

#[test]
fn rotary_angles_follow_position_base_and_scaling() {
    let x = normal(&[1, 1, 1, 8], 1);
    let plain = |i: usize| 10_000f64.powf(-(i as f64) / 4.0);
    let stretched = |factors: [f64; 4]| move |i: usize| plain(i) / factors[i];
    let check = |scaling: serde_json::Value, position: i32, angle: &dyn Fn(usize) -> f64| {
        let changes = json!({"rope_theta": 10000.0, "rope_scaling": scaling, "max_position_embeddings": 64});
        let got = Rope::new(&config(&changes)).unwrap().forward(&x, position).unwrap();
        assert_near(&got, &array(&rotated(&values(&x), f64::from(position), angle), &[1, 1, 1, 8]), 2e-5);
    };
    check(serde_json::Value::Null, 0, &|_| 0.0);
    check(serde_json::Value::Null, 37, &plain);
    check(json!({"rope_type": "linear", "factor": 4.0}), 37, &stretched([4.0; 4]));
    // Within the trained length the dynamic base is the plain one; at 128 positions it has grown.
    let dynamic = json!({"rope_type": "dynamic", "factor": 2.0});
    check(dynamic.clone(), 37, &plain);
    let grown = 10_000f64 * (2.0f64 * 128.0 / 64.0 - 1.0).powf(8.0 / 6.0);
    check(dynamic, 127, &|i| grown.powf(-(i as f64) / 4.0));
}
