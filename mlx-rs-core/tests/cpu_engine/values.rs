//! Values, shapes that do not fit, and what goes to MLX.

use std::sync::{Arc, Barrier};
use std::thread;

use mlx_rs_core::cpu_engine::{self, applies, causal_softmax, enabled, with_engine};
use mlx_rs_core::{Array, Device, Dtype, ErrorKind, Result, Stream, device, ops, transforms};

use super::{INF, assert_close, bits, both, noise, numbers};

/// Small softmax weights come out of MLX with errors above a millionth of their own; this is one of the weights' sum.
const WEIGHT: f32 = 1e-8;

#[test]
fn softmax_and_logsumexp_of_odd_sizes_are_mlxs_to_a_millionth() -> Result<()> {
    for shape in [&[1][..], &[7], &[3, 1], &[3, 5], &[2, 3, 513], &[5, 1700], &[2, 2, 2, 2, 31]] {
        let x = noise(shape, 8.0, 1)?;
        let last = x.ndim() as i32 - 1;
        for axis in [-1, last] {
            let (ours, theirs) = both(|| ops::softmax(&x, Some(&[axis]), true))?;
            assert_close(&ours, &theirs, 1e-6, WEIGHT, &format!("softmax {shape:?}"))?;
            for keepdims in [false, true] {
                let (ours, theirs) = both(|| ops::logsumexp(&x, Some(&[axis]), keepdims))?;
                assert_close(&ours, &theirs, 1e-6, 1e-7, &format!("logsumexp {shape:?}"))?;
            }
        }
    }
    Ok(())
}

#[test]
fn the_last_bits_show_which_kernel_ran() -> Result<()> {
    let x = noise(&[4, 1000], 3.0, 2)?;
    let (ours, theirs) = both(|| ops::softmax(&x, Some(&[-1]), false))?;
    assert_ne!(bits(&ours)?, bits(&theirs)?);
    let (ours, theirs) = both(|| cpu_engine::swiglu(&x, &x))?;
    assert_ne!(bits(&ours)?, bits(&theirs)?);
    // Off, it is MLX's own composition.
    let plain = ops::multiply(&ops::multiply(&x, &ops::sigmoid(&x)?)?, &x)?;
    assert_eq!(bits(&theirs)?, bits(&plain)?);
    // Other axes and other dtypes are MLX's either way.
    let (ours, theirs) = both(|| ops::softmax(&x, Some(&[0]), false))?;
    assert_eq!(bits(&ours)?, bits(&theirs)?);
    let half = x.astype(Dtype::Float16)?;
    let (ours, theirs) = both(|| ops::logsumexp(&half, Some(&[1]), false)?.astype(Dtype::Float32))?;
    assert_eq!(bits(&ours)?, bits(&theirs)?);
    Ok(())
}

#[test]
fn swiglu_is_mlxs_to_a_millionth() -> Result<()> {
    for shape in [&[1][..], &[15], &[3, 5, 7], &[40_001]] {
        let (gate, up) = (noise(shape, 4.0, 3)?, noise(shape, 1.0, 4)?);
        let (ours, theirs) = both(|| cpu_engine::swiglu(&gate, &up))?;
        assert_close(&ours, &theirs, 1e-6, 0.0, &format!("{shape:?}"))?;
    }
    // Shapes that only broadcast are MLX's to combine.
    let (gate, up) = (noise(&[3, 1], 1.0, 5)?, noise(&[4], 1.0, 6)?);
    let (ours, theirs) = both(|| cpu_engine::swiglu(&gate, &up))?;
    assert_eq!((ours.shape(), bits(&ours)?), (&[3, 4][..], bits(&theirs)?));
    Ok(())
}

#[test]
fn dequantised_weights_are_mlxs_to_the_last_bit() -> Result<()> {
    let w = noise(&[2, 3, 256], 1.0, 7)?;
    for (bits_each, group) in [(2, 32), (3, 64), (4, 128), (5, 32), (6, 64), (8, 128), (4, 64), (8, 32)] {
        let parts = ops::quantize(&w, Some(group), Some(bits_each), "affine")?;
        let (ours, theirs) =
            both(|| cpu_engine::dequantize(&parts[0], &parts[1], Some(&parts[2]), group, bits_each, "affine"))?;
        assert_eq!((ours.shape(), bits(&ours)?), (theirs.shape(), bits(&theirs)?), "{bits_each} {group}");
        // Rows taken by number, as an embedding does.
        let ids = Array::from_slice(&[2i32, 0, 2, 1], &[2, 2])?;
        let taken: Vec<Array> = parts.iter().map(|part| ops::take(part, &ids, Some(1))).collect::<Result<_>>()?;
        let (ours, theirs) =
            both(|| cpu_engine::dequantize(&taken[0], &taken[1], Some(&taken[2]), group, bits_each, "affine"))?;
        assert_eq!((ours.shape(), bits(&ours)?), (&[2, 2, 2, 256][..], bits(&theirs)?));
    }
    Ok(())
}

#[test]
fn half_precision_scales_and_other_modes_are_left_to_mlx() -> Result<()> {
    let parts = ops::quantize(&noise(&[2, 64], 1.0, 8)?, Some(64), Some(4), "affine")?;
    let (scales, biases) = (parts[1].astype(Dtype::Float16)?, parts[2].astype(Dtype::Float16)?);
    let (ours, theirs) = both(|| cpu_engine::dequantize(&parts[0], &scales, Some(&biases), 64, 4, "affine"))?;
    assert_eq!((ours.dtype(), theirs.dtype()), (Dtype::Float16, Dtype::Float16));
    assert_eq!(bits(&ours.astype(Dtype::Float32)?)?, bits(&theirs.astype(Dtype::Float32)?)?);
    let parts = ops::quantize(&noise(&[2, 64], 1.0, 8)?, Some(32), Some(4), "mxfp4")?;
    let (ours, _) = both(|| cpu_engine::dequantize(&parts[0], &parts[1], None, 32, 4, "mxfp4"))?;
    assert_eq!((ours.shape(), ours.dtype()), (&[2, 64][..], Dtype::Bfloat16));
    Ok(())
}

#[test]
fn inputs_need_not_be_contiguous() -> Result<()> {
    let base = noise(&[6, 8, 10], 3.0, 9)?;
    let views = [
        ops::transpose(&base, None)?,
        ops::slice(&base, &[1, 0, 1], &[6, 8, 10], &[2, 3, 3])?,
        ops::slice(&base, &[0, 2, 0], &[6, 5, 10], &[1, 1, 1])?,
        ops::broadcast_to(&ops::slice(&base, &[0, 0, 0], &[1, 8, 1], &[1, 1, 1])?, &[6, 8, 10])?,
    ];
    for (at, view) in views.iter().enumerate() {
        let (ours, theirs) = both(|| ops::softmax(view, Some(&[-1]), false))?;
        assert_close(&ours, &theirs, 1e-6, WEIGHT, &format!("softmax of view {at}"))?;
        let (ours, theirs) = both(|| ops::logsumexp(view, Some(&[-1]), false))?;
        assert_close(&ours, &theirs, 1e-6, 1e-7, &format!("logsumexp of view {at}"))?;
        let (ours, theirs) = both(|| cpu_engine::swiglu(view, view))?;
        assert_close(&ours, &theirs, 1e-6, 0.0, &format!("swiglu of view {at}"))?;
    }
    let parts = ops::quantize(&noise(&[6, 64], 1.0, 10)?, Some(32), Some(4), "affine")?;
    let every_second = |part: &Array| ops::slice(part, &[1, 0], &[6, part.dim(1)?], &[2, 1]);
    let (w, scales, biases) = (every_second(&parts[0])?, every_second(&parts[1])?, every_second(&parts[2])?);
    let (ours, theirs) = both(|| cpu_engine::dequantize(&w, &scales, Some(&biases), 32, 4, "affine"))?;
    assert_eq!((ours.shape(), bits(&ours)?), (&[3, 64][..], bits(&theirs)?));
    Ok(())
}

#[test]
fn an_input_that_is_used_again_keeps_its_values() -> Result<()> {
    // The kernels may write over an input that nobody else needs; here somebody does.
    let x = noise(&[3, 200], 2.0, 11)?;
    let (ours, theirs) = both(|| {
        let doubled = (&x * 2.0)?;
        let y = ops::softmax(&doubled, Some(&[-1]), false)?;
        let z = cpu_engine::swiglu(&doubled, &doubled)?;
        ops::add(&ops::add(&y, &z)?, &doubled)
    })?;
    assert_close(&ours, &theirs, 1e-5, 1e-6, "sum")
}

#[test]
fn empty_arrays_have_mlxs_results() -> Result<()> {
    for shape in [[0, 4], [2, 0]] {
        let x = ops::zeros(&shape, Dtype::Float32)?;
        let (ours, theirs) = both(|| ops::softmax(&x, Some(&[-1]), false))?;
        assert_eq!((ours.shape(), theirs.shape()), (&shape[..], &shape[..]));
        assert_eq!(both(|| cpu_engine::swiglu(&x, &x))?.0.shape(), shape);
        let message = with_engine(true, || ops::logsumexp(&x, Some(&[-1]), false)).unwrap_err().message;
        assert!(message.contains("empty"), "{message}");
    }
    Ok(())
}

#[test]
fn masked_and_broken_rows_are_mlxs() -> Result<()> {
    let low = f32::MIN;
    let rows =
        [[-INF, -INF, -INF], [-INF, 0.0, 1.0], [low, low, low], [low, 3.0, low], [1.0, f32::NAN, 2.0], [INF, 0.0, 1.0]];
    let x = Array::from_slice(rows.as_flattened(), &[6, 3])?;
    let (ours, theirs) = both(|| ops::softmax(&x, Some(&[-1]), true))?;
    assert_close(&ours, &theirs, 1e-6, 0.0, "softmax")?;
    let third = 1.0 / 3.0;
    assert_eq!(numbers(&ours)?[6..12], [third, third, third, 0.0, 1.0, 0.0]);
    assert!(numbers(&ours)?[..3].iter().all(|y| y.is_nan()));
    let (ours, theirs) = both(|| ops::logsumexp(&x, Some(&[-1]), false))?;
    assert_close(&ours, &theirs, 1e-6, 0.0, "logsumexp")?;
    assert_eq!(numbers(&ours)?[0], -INF);
    Ok(())
}

#[test]
fn the_causal_softmax_is_the_masked_one() -> Result<()> {
    // Square, with a past, with a group of heads, with queries that see nothing.
    for (shape, queries) in [([1, 2, 33, 33], 33), ([2, 1, 5, 600], 5), ([1, 3, 24, 11], 8), ([1, 2, 6, 2], 6)] {
        let scores = noise(&shape, 4.0, 12)?;
        let (ours, theirs) = both(|| causal_softmax(&scores, queries))?;
        assert_close(&ours, &theirs, 1e-6, WEIGHT, &format!("{shape:?}"))?;
    }
    let ours = both(|| causal_softmax(&ops::zeros(&[4, 3], Dtype::Float32)?, 4))?.0;
    let third = 1.0 / 3.0;
    assert_eq!(numbers(&ours)?, [third, third, third, 1.0, 0.0, 0.0, 0.5, 0.5, 0.0, third, third, third]);
    Ok(())
}

#[test]
fn wrong_shapes_are_refused_when_the_op_is_built() -> Result<()> {
    let x = noise(&[6, 4], 1.0, 13)?;
    let failure = |queries| both(|| causal_softmax(&x, queries)).unwrap_err();
    assert_eq!((failure(4).kind, failure(0).kind), (ErrorKind::Shape, ErrorKind::Shape));
    assert_eq!(failure(4).message, "scores have shape [6, 4], wanted rows in multiples of 4 queries");
    assert!(with_engine(true, || cpu_engine::swiglu(&x, &noise(&[5, 4], 1.0, 1)?)).is_err());
    let parts = ops::quantize(&noise(&[2, 128], 1.0, 8)?, Some(64), Some(4), "affine")?;
    let wrong = |group, bits| {
        with_engine(true, || cpu_engine::dequantize(&parts[0], &parts[1], Some(&parts[2]), group, bits, "affine"))
    };
    assert!(wrong(64, 4).is_ok());
    for (group, bits) in [(32, 4), (64, 8), (64, 7), (48, 4)] {
        assert!(wrong(group, bits).is_err(), "{group} {bits}");
    }
    Ok(())
}

#[test]
fn the_scope_decides_and_ends_with_a_panic() -> Result<()> {
    let x = noise(&[2], 1.0, 14)?;
    let outside = enabled();
    with_engine(false, || {
        assert!(!enabled());
        let caught = std::panic::catch_unwind(|| with_engine(true, || panic!("{}", enabled())));
        assert_eq!(caught.unwrap_err().downcast_ref::<String>().map(String::as_str), Some("true"));
        assert!(!enabled());
    });
    assert_eq!(enabled(), outside);
    with_engine(true, || {
        device::with_device(Device::Cpu, || {
            assert!(applies(&[&x])?);
            assert!(!applies(&[&x, &x.astype(Dtype::Bfloat16)?])?);
            assert!(!applies(&[&ops::zeros(&[0], Dtype::Float32)?])?);
            Ok(())
        })
    })
}

#[test]
fn threads_with_their_own_streams_compute_at_once() {
    let barrier = Arc::new(Barrier::new(2));
    let threads: Vec<_> = (0..2u64)
        .map(|index| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || -> Result<()> {
                let x = noise(&[64, 500], 3.0, index)?;
                let theirs = with_engine(false, || ops::softmax(&x, Some(&[-1]), false))?;
                transforms::eval([&theirs])?;
                let stream = Stream::new(Device::Cpu)?;
                barrier.wait();
                device::with_stream(&stream, || {
                    with_engine(true, || {
                        for _ in 0..30 {
                            let ours = ops::softmax(&x, Some(&[-1]), false)?;
                            assert_close(&ours, &theirs, 1e-6, WEIGHT, &format!("thread {index}"))?;
                        }
                        stream.synchronize()
                    })
                })
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic").expect("no error");
    }
}
