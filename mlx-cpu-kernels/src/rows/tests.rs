use super::activation::{
    mlxk_exp_f32, mlxk_sigmoid_f32, mlxk_silu_backward_f32, mlxk_silu_f32, mlxk_swiglu_backward_f32, mlxk_swiglu_f32,
};
use super::softmax::{
    mlxk_causal_softmax_f32, mlxk_logsumexp_backward_f32, mlxk_logsumexp_f32, mlxk_softmax_backward_f32,
    mlxk_softmax_f32,
};
use crate::set_threads;
use crate::tests::{hold_settings, noise, with_each_isa};

const INF: f32 = f32::INFINITY;
const COLS: [usize; 8] = [1, 3, 31, 32, 65, 512, 513, 1700];
const LENS: [usize; 5] = [1, 15, 512, 513, 40_001];

type Unary = unsafe extern "C" fn(usize, *const f32, *mut f32);
type Binary = unsafe extern "C" fn(usize, *const f32, *const f32, *mut f32);

fn unary(function: Unary, x: &[f32]) -> Vec<f32> {
    let mut y = vec![7.0; x.len()];
    // SAFETY: both buffers have the length given.
    unsafe { function(x.len(), x.as_ptr(), y.as_mut_ptr()) };
    y
}

fn binary(function: Binary, x: &[f32], z: &[f32]) -> Vec<f32> {
    let mut y = vec![7.0; x.len()];
    // SAFETY: all buffers have the length given.
    unsafe { function(x.len(), x.as_ptr(), z.as_ptr(), y.as_mut_ptr()) };
    y
}

fn swiglu_backward(g: &[f32], u: &[f32], dy: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (mut dg, mut du) = (vec![7.0; g.len()], vec![7.0; g.len()]);
    // SAFETY: all buffers have the length given.
    unsafe {
        mlxk_swiglu_backward_f32(g.len(), g.as_ptr(), u.as_ptr(), dy.as_ptr(), dg.as_mut_ptr(), du.as_mut_ptr());
    }
    (dg, du)
}

fn softmax(cols: usize, x: &[f32]) -> Vec<f32> {
    let mut y = vec![7.0; x.len()];
    // SAFETY: both buffers hold whole rows.
    unsafe { mlxk_softmax_f32(x.len() / cols, cols, x.as_ptr(), y.as_mut_ptr()) };
    y
}

fn logsumexp(rows: usize, cols: usize, x: &[f32]) -> Vec<f32> {
    let mut y = vec![7.0; rows];
    // SAFETY: x holds rows * cols elements, y a row's each.
    unsafe { mlxk_logsumexp_f32(rows, cols, x.as_ptr(), y.as_mut_ptr()) };
    y
}

fn scaled(values: Vec<f32>, by: f32) -> Vec<f32> {
    values.into_iter().map(|v| v * by).collect()
}

fn sigma(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Fails unless |got − wanted| ≤ relative · |wanted| + absolute everywhere.
fn assert_close(got: &[f32], wanted: &[f64], relative: f64, absolute: f64, what: &str) {
    assert_eq!(got.len(), wanted.len());
    for (i, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        let error = (f64::from(*got) - wanted).abs();
        assert!(error <= relative * wanted.abs() + absolute, "{what} at {i}: {got} instead of {wanted}");
    }
}

#[test]
fn exp_is_within_two_units_in_the_last_place() {
    let (low, high) = (-87.32, 88.722_8);
    let steps = 300_000;
    let mut x: Vec<f32> = (0..=steps).map(|i| low + (high - low) * (i as f32 / steps as f32)).collect();
    x.extend(noise(50_000, 4));
    x.extend(scaled(noise(1000, 5), 1e-4));
    with_each_isa(|isa| {
        for (x, y) in x.iter().zip(unary(mlxk_exp_f32, &x)) {
            let wanted = f64::from(*x).exp();
            let nearest = wanted as f32;
            let unit = f64::from(f32::from_bits(nearest.to_bits() + 1)) - f64::from(nearest);
            let error = (f64::from(y) - wanted).abs() / unit;
            assert!(error <= 2.0, "{isa:?}: exp({x:e}) is {y:e}, {error} units off");
        }
    });
}

#[test]
fn exp_and_sigmoid_have_exact_limits_and_no_subnormal_results() {
    let x = [f32::NEG_INFINITY, -200.0, -87.34, 0.0, -0.0, 88.73, 200.0, INF];
    with_each_isa(|_| {
        assert_eq!(unary(mlxk_exp_f32, &x), [0.0, 0.0, 0.0, 1.0, 1.0, INF, INF, INF]);
        assert_eq!(unary(mlxk_sigmoid_f32, &x), [0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0, 1.0]);
        for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff)] {
            for function in [mlxk_exp_f32 as Unary, mlxk_sigmoid_f32, mlxk_silu_f32] {
                assert!(unary(function, &[nan])[0].is_nan());
            }
        }
        let edge: Vec<f32> = (0..2000).map(|i| -86.0 - i as f32 * 0.002).collect();
        for function in [mlxk_exp_f32 as Unary, mlxk_sigmoid_f32, mlxk_silu_f32] {
            assert!(unary(function, &edge).iter().all(|y| !y.is_subnormal()));
        }
    });
}

#[test]
fn activations_agree_with_an_f64_reference() {
    with_each_isa(|isa| {
        for len in LENS {
            let (x, u) = (scaled(noise(len, 1), 20.0), noise(len, 2));
            let wide = || x.iter().map(|x| f64::from(*x));
            let what = format!("{isa:?} {len}");
            let wanted: Vec<f64> = wide().map(sigma).collect();
            assert_close(&unary(mlxk_sigmoid_f32, &x), &wanted, 4e-7, 0.0, &format!("sigmoid {what}"));
            let wanted: Vec<f64> = wide().map(|x| x * sigma(x)).collect();
            assert_close(&unary(mlxk_silu_f32, &x), &wanted, 5e-7, 0.0, &format!("silu {what}"));
            let wanted: Vec<f64> = wide().zip(&u).map(|(x, u)| x * sigma(x) * f64::from(*u)).collect();
            assert_close(&binary(mlxk_swiglu_f32, &x, &u), &wanted, 6e-7, 0.0, &format!("swiglu {what}"));
        }
    });
}

#[test]
fn the_backward_passes_of_the_activations_agree_with_an_f64_reference() {
    let slope = |x: f64| sigma(x) * (1.0 + x * (1.0 - sigma(x)));
    with_each_isa(|isa| {
        for len in LENS {
            let (x, u, dy) = (scaled(noise(len, 1), 20.0), noise(len, 2), noise(len, 3));
            let what = format!("{isa:?} {len}");
            let wide = |i: usize| (f64::from(x[i]), f64::from(u[i]), f64::from(dy[i]));
            let wanted: Vec<f64> = (0..len).map(|i| wide(i).2 * slope(wide(i).0)).collect();
            assert_close(&binary(mlxk_silu_backward_f32, &x, &dy), &wanted, 1e-6, 3e-7, &format!("silu {what}"));
            let (dg, du) = swiglu_backward(&x, &u, &dy);
            let wanted: Vec<f64> = (0..len).map(|i| wide(i).2 * wide(i).1 * slope(wide(i).0)).collect();
            assert_close(&dg, &wanted, 1e-6, 3e-7, &format!("gate {what}"));
            let wanted: Vec<f64> = (0..len).map(|i| wide(i).2 * wide(i).0 * sigma(wide(i).0)).collect();
            assert_close(&du, &wanted, 1e-6, 0.0, &format!("up {what}"));
        }
    });
}

#[test]
fn swiglu_carries_nan_and_infinity_as_its_formula_does() {
    with_each_isa(|_| {
        let y = binary(mlxk_swiglu_f32, &[f32::NAN, INF, 1.0, -1000.0, 0.0], &[1.0, 2.0, INF, 3.0, 5.0]);
        assert!(y[0].is_nan());
        assert_eq!(y[1..], [INF, INF, 0.0, 0.0]);
        let (dg, du) = swiglu_backward(&[-1000.0, 0.0], &[2.0, 2.0], &[1.0, 3.0]);
        assert_eq!((dg, du), (vec![0.0, 3.0], vec![0.0, 0.0]));
    });
}

#[test]
fn softmax_and_logsumexp_agree_with_an_f64_reference() {
    with_each_isa(|isa| {
        for cols in COLS {
            let rows = 5;
            let x = scaled(noise(rows * cols, cols as u64), 30.0);
            let (mut weights, mut sums) = (Vec::new(), Vec::new());
            for row in x.chunks(cols) {
                let shift = row.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
                let exps: Vec<f64> = row.iter().map(|x| f64::from(*x - shift).exp()).collect();
                let sum: f64 = exps.iter().sum();
                weights.extend(exps.iter().map(|e| e / sum));
                sums.push(f64::from(shift) + sum.ln());
            }
            let what = format!("{isa:?} {cols}");
            assert_close(&softmax(cols, &x), &weights, 1e-6, 0.0, &format!("softmax {what}"));
            assert_close(&logsumexp(rows, cols, &x), &sums, 2e-7, 2e-7, &format!("logsumexp {what}"));
        }
    });
}

#[test]
fn the_backward_passes_of_softmax_and_logsumexp_agree_with_an_f64_reference() {
    with_each_isa(|isa| {
        for cols in COLS {
            let rows = 5;
            let x = scaled(noise(rows * cols, 8), 4.0);
            let dy = noise(rows * cols, 9);
            let (y, sums) = (softmax(cols, &x), logsumexp(rows, cols, &x));
            let (mut dx, mut dl) = (vec![7.0; x.len()], vec![7.0; x.len()]);
            // SAFETY: the matrices hold rows * cols elements, the vectors at least rows.
            unsafe {
                mlxk_softmax_backward_f32(rows, cols, y.as_ptr(), dy.as_ptr(), dx.as_mut_ptr());
                mlxk_logsumexp_backward_f32(rows, cols, x.as_ptr(), sums.as_ptr(), dy.as_ptr(), dl.as_mut_ptr());
            }
            let (mut wanted_dx, mut wanted_dl) = (Vec::new(), Vec::new());
            for r in 0..rows {
                let row = r * cols..(r + 1) * cols;
                let product: f64 = row.clone().map(|i| f64::from(y[i]) * f64::from(dy[i])).sum();
                wanted_dx.extend(row.clone().map(|i| f64::from(y[i]) * (f64::from(dy[i]) - product)));
                wanted_dl.extend(row.map(|i| f64::from(dy[r]) * (f64::from(x[i]) - f64::from(sums[r])).exp()));
            }
            let what = format!("{isa:?} {cols}");
            assert_close(&dx, &wanted_dx, 1e-6, 3e-7, &format!("softmax {what}"));
            assert_close(&dl, &wanted_dl, 1e-6, 0.0, &format!("logsumexp {what}"));
        }
    });
}

#[test]
fn rows_with_infinities_or_nan_follow_the_formula() {
    let low = f32::NEG_INFINITY;
    with_each_isa(|_| {
        for cols in [4, 40, 600] {
            let row = |first: f32, rest: f32| {
                let mut row = vec![rest; cols];
                row[cols / 2] = first;
                row
            };
            let mut masked = vec![0.0; cols];
            masked[cols / 2] = 1.0;
            assert_eq!(softmax(cols, &row(3.0, low)), masked);
            assert_eq!(logsumexp(1, cols, &row(3.0, low)), [3.0]);
            for bad in [row(low, low), row(INF, 0.0), row(f32::NAN, 0.0), row(f32::NAN, low)] {
                assert!(softmax(cols, &bad).iter().any(|y| y.is_nan()));
            }
            assert!(softmax(cols, &row(f32::NAN, 0.0)).iter().all(|y| y.is_nan()));
            assert_eq!(logsumexp(1, cols, &row(low, low)), [low]);
            assert_eq!(logsumexp(1, cols, &row(INF, low)), [INF]);
            assert!(logsumexp(1, cols, &row(f32::NAN, 0.0))[0].is_nan());
            assert!(logsumexp(1, cols, &row(f32::NAN, INF))[0].is_nan());
        }
    });
}

#[test]
fn softmax_weights_under_e_to_the_minus_80_are_zero() {
    with_each_isa(|_| {
        let y = softmax(3, &[0.0, -79.0, -81.0]);
        assert_eq!((y[0], y[2]), (1.0, 0.0));
        assert_close(&y[1..2], &[(-79f64).exp()], 1e-6, 0.0, "weight");
        let mut many = vec![0.0; 4000];
        many[7] = -79.5;
        let y = softmax(4000, &many);
        assert_eq!(y[7], 0.0);
        assert!(y.iter().all(|y| !y.is_subnormal()));
    });
}

#[test]
fn empty_inputs_are_left_alone() {
    let (null, out) = (std::ptr::null(), std::ptr::null_mut());
    // SAFETY: sizes of zero read and write nothing.
    unsafe {
        mlxk_exp_f32(0, null, out);
        mlxk_swiglu_f32(0, null, null, out);
        mlxk_softmax_f32(0, 5, null, out);
        mlxk_softmax_f32(5, 0, null, out);
        mlxk_softmax_backward_f32(5, 0, null, null, out);
        mlxk_logsumexp_f32(0, 5, null, out);
    }
    assert_eq!(logsumexp(3, 0, &[]), [f32::NEG_INFINITY; 3]);
}

#[test]
fn an_output_may_be_its_own_input() {
    let _held = hold_settings();
    let x = scaled(noise(1700, 3), 5.0);
    let mut y = x.clone();
    let mut g = x.clone();
    // SAFETY: the buffers have the sizes given; the kernels allow the same buffer.
    unsafe {
        mlxk_softmax_f32(2, 850, y.as_ptr(), y.as_mut_ptr());
        mlxk_silu_f32(1700, g.as_ptr(), g.as_mut_ptr());
    }
    assert_eq!(y, softmax(850, &x));
    assert_eq!(g, unary(mlxk_silu_f32, &x));
}

#[test]
fn row_kernels_are_the_same_to_the_last_bit_on_any_number_of_threads() {
    let _held = hold_settings();
    let x = scaled(noise(101 * 1003, 3), 5.0);
    let run = |threads: usize| {
        set_threads(threads);
        (softmax(1003, &x), logsumexp(101, 1003, &x), unary(mlxk_silu_f32, &x))
    };
    let expected = run(1);
    for threads in [2, 4] {
        assert!(run(threads) == expected, "{threads} threads");
    }
    set_threads(0);
}

#[test]
fn a_causal_softmax_is_the_softmax_of_what_each_query_sees() {
    with_each_isa(|isa| {
        // A square, a past of 600 columns, two stacked masks, and queries before the first column.
        for (rows, cols, queries) in [(33, 33, 33), (5, 605, 5), (16, 20, 8), (6, 2, 6)] {
            let x = scaled(noise(rows * cols, 3), 20.0);
            let mut y = x.clone();
            // SAFETY: both are the one buffer of rows * cols elements.
            unsafe { mlxk_causal_softmax_f32(rows, cols, queries, y.as_ptr(), y.as_mut_ptr()) };
            for (r, (x, y)) in x.chunks(cols).zip(y.chunks(cols)).enumerate() {
                let what = format!("{isa:?} {rows} {cols} {queries} row {r}");
                let visible = (r % queries + 1 + cols).saturating_sub(queries);
                if visible == 0 {
                    assert!(y.iter().all(|y| *y == 1.0 / cols as f32), "{what}");
                    continue;
                }
                assert_eq!(y[..visible], softmax(visible, &x[..visible]), "{what}");
                assert!(y[visible..].iter().all(|y| *y == 0.0), "{what}");
            }
        }
    });
}
