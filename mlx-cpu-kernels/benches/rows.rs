//! Speed of the row kernels and of dequantisation: `cargo bench -p mlx-cpu-kernels --bench rows`.
//!
//! Prints milliseconds and nanoseconds per element, the best of the repeats, on all threads.

use std::time::{Duration, Instant};

use mlx_cpu_kernels::dequantize::{MLXK_F32, mlxk_dequantize_f32};
use mlx_cpu_kernels::rows::activation::{mlxk_exp_f32, mlxk_sigmoid_f32, mlxk_swiglu_backward_f32, mlxk_swiglu_f32};
use mlx_cpu_kernels::rows::softmax::{mlxk_logsumexp_f32, mlxk_softmax_backward_f32, mlxk_softmax_f32};
use mlx_cpu_kernels::{isa, threads};

fn main() {
    println!("{}, {} threads", isa::current().name(), threads::threads());
    rows(9 * 1024, 1024);
    rows(512, 49152);
    elementwise(2048 * 1536);
    for bits in [2, 3, 4, 5, 6, 8] {
        dequantize(49152, 576, bits);
    }
}

fn report(name: &str, size: &str, elements: usize, work: impl FnMut()) {
    let best = best_time(work).as_secs_f64();
    println!("{name:>20} {size:>15} {:9.3} ms {:7.3} ns", best * 1e3, best * 1e9 / elements as f64);
}

fn best_time(mut work: impl FnMut()) -> Duration {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    let mut repeats = 0;
    while repeats < 3 || begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed());
        repeats += 1;
    }
    best
}

/// Values from −8 to 8.
fn ramp(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i * 2_654_435_761 % 1024) as f32 / 64.0 - 8.0).collect()
}

fn rows(rows: usize, cols: usize) {
    let (len, size) = (rows * cols, format!("{rows}x{cols}"));
    let (x, mut y, mut dx, mut sums) = (ramp(len), vec![0.0; len], vec![0.0; len], vec![0.0; rows]);
    // SAFETY: in each call the buffers have the sizes given.
    unsafe {
        report("softmax", &size, len, || mlxk_softmax_f32(rows, cols, x.as_ptr(), y.as_mut_ptr()));
        report("softmax backward", &size, len, || {
            mlxk_softmax_backward_f32(rows, cols, y.as_ptr(), x.as_ptr(), dx.as_mut_ptr());
        });
        report("logsumexp", &size, len, || mlxk_logsumexp_f32(rows, cols, x.as_ptr(), sums.as_mut_ptr()));
    }
}

fn elementwise(len: usize) {
    let (x, u, dy) = (ramp(len), ramp(len), ramp(len));
    let (mut y, mut z) = (vec![0.0; len], vec![0.0; len]);
    let size = len.to_string();
    // SAFETY: in each call the buffers have the size given.
    unsafe {
        report("exp", &size, len, || mlxk_exp_f32(len, x.as_ptr(), y.as_mut_ptr()));
        report("sigmoid", &size, len, || mlxk_sigmoid_f32(len, x.as_ptr(), y.as_mut_ptr()));
        report("swiglu", &size, len, || mlxk_swiglu_f32(len, x.as_ptr(), u.as_ptr(), y.as_mut_ptr()));
        report("swiglu backward", &size, len, || {
            mlxk_swiglu_backward_f32(len, x.as_ptr(), u.as_ptr(), dy.as_ptr(), y.as_mut_ptr(), z.as_mut_ptr());
        });
    }
}

fn dequantize(rows: usize, cols: usize, bits: u32) {
    let group = 64;
    let packed = vec![0x5a3c_96e1_u32; rows * cols * bits as usize / 32];
    let (scales, biases) = (vec![0.1f32; rows * cols / group], vec![-0.4f32; rows * cols / group]);
    let mut out = vec![0f32; rows * cols];
    let (scales, biases) = (scales.as_ptr().cast(), biases.as_ptr().cast());
    report(&format!("dequantize {bits} bits"), &format!("{rows}x{cols}"), rows * cols, || {
        // SAFETY: the buffers have the sizes given.
        let status = unsafe {
            mlxk_dequantize_f32(rows, cols, bits, group, packed.as_ptr(), MLXK_F32, scales, biases, out.as_mut_ptr())
        };
        assert_eq!(status, 0, "argument code {status}");
    });
}
