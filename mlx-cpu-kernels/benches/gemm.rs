//! Speed of the matrix products on the shapes of a LoRA step: `cargo bench -p mlx-cpu-kernels --bench gemm`.
//!
//! Prints GFLOP/s and microseconds, the best of the repeats, on one thread and on all. `nt` is A·Bᵀ (a layer's forward),
//! `nn` A·B (its input gradient), `tn` Aᵀ·B (a weight gradient). Run it on a quiet machine.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use mlx_cpu_kernels::blas::mlxk_sgemm;
use mlx_cpu_kernels::{blas_name, set_threads, threads};

/// (m, n, k, what it is in a step of the 135M shape at 512 tokens)
const SHAPES: [(usize, usize, usize, &str); 12] = [
    (512, 576, 576, "q and o projections"),
    (512, 1536, 576, "gate and up projections"),
    (512, 576, 1536, "down projection"),
    (512, 49152, 576, "logits"),
    (512, 576, 49152, "gradient of the logits' input"),
    (1024, 2048, 2048, "a layer of a 1B model"),
    (512, 8, 576, "LoRA down, rank 8"),
    (512, 576, 8, "LoRA up, rank 8"),
    (8, 576, 512, "gradient of a LoRA factor"),
    (512, 512, 64, "attention scores of a head"),
    (512, 64, 512, "attention output of a head"),
    (1, 2048, 2048, "decoding"),
];

const ROW_MAJOR: c_int = 101;
const PLAIN: c_int = 111;
const TRANSPOSED: c_int = 112;

fn main() {
    let all = threads::threads();
    println!("{}", blas_name());
    println!("{:>20} {:>3} {:>21} {:>21}", "m x n x k", "", "1 thread", format!("{all} threads"));
    for (m, n, k, meaning) in SHAPES {
        for layout in ["nt", "nn", "tn"] {
            let cells: Vec<String> = [1, all]
                .into_iter()
                .map(|count| {
                    set_threads(count);
                    let best = best_time(m, n, k, layout);
                    let rate = 2.0 * (m * n * k) as f64 / best.as_secs_f64() / 1e9;
                    format!("{rate:7.1} {:10.1} µs", best.as_secs_f64() * 1e6)
                })
                .collect();
            println!("{:>20} {layout:>3} {} {}  {meaning}", format!("{m} x {n} x {k}"), cells[0], cells[1]);
        }
    }
}

fn best_time(m: usize, n: usize, k: usize, layout: &str) -> Duration {
    let (a, b, mut c) = (vec![0.5f32; m * k], vec![0.25f32; k * n], vec![0f32; m * n]);
    let (transpose_a, lda) = if layout == "tn" { (TRANSPOSED, m) } else { (PLAIN, k) };
    let (transpose_b, ldb) = if layout == "nt" { (TRANSPOSED, k) } else { (PLAIN, n) };
    let sizes = [m, n, k, lda, ldb].map(|size| size as c_int);
    let [m, n, k, lda, ldb] = sizes;
    let mut best = Duration::MAX;
    let begin = Instant::now();
    let mut repeats = 0;
    while repeats < 3 || begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        // SAFETY: the buffers have the sizes and leading dimensions given.
        let status = unsafe {
            mlxk_sgemm(
                ROW_MAJOR,
                transpose_a,
                transpose_b,
                m,
                n,
                k,
                1.0,
                a.as_ptr(),
                lda,
                b.as_ptr(),
                ldb,
                0.0,
                c.as_mut_ptr(),
                n,
            )
        };
        best = best.min(start.elapsed());
        assert_eq!(status, 0, "argument {status} is wrong");
        repeats += 1;
    }
    best
}
