use std::ffi::c_int;

use super::arguments::{COLUMN_MAJOR, CONJUGATE_TRANSPOSE, NO_TRANSPOSE, ROW_MAJOR, TRANSPOSE};
use super::{blas_name, mlxk_dgemm, mlxk_sgemm};
use crate::set_threads;
use crate::tests::{hold_settings, noise, with_each_isa};

/// Sizes that reach each path: empty, vectors, tiny ranks, odd sizes, several blocks of depth.
const SHAPES: [(usize, usize, usize); 14] = [
    (0, 3, 2),
    (3, 0, 2),
    (3, 2, 0),
    (1, 1, 1),
    (1, 37, 70),
    (1, 1100, 5),
    (37, 1, 70),
    (2, 2, 3),
    (5, 7, 1),
    (33, 8, 65),
    (17, 31, 8),
    (65, 67, 129),
    (66, 3, 1200),
    (11, 66, 1100),
];

/// A matrix in memory: its logical elements by row and column, stored by layout and flag with a leading dimension above
/// the least, the gap filled with NaN, which must never reach a result.
struct Stored {
    data: Vec<f64>,
    leading: usize,
}

fn element(seed: usize, i: usize, j: usize) -> f64 {
    ((i * 7 + j * 13 + seed * 5 + i * j) % 9) as f64 - 4.0
}

fn store(seed: usize, rows: usize, cols: usize, by_rows: bool) -> Stored {
    let (lines, length) = if by_rows { (rows, cols) } else { (cols, rows) };
    let leading = length.max(1) + 3;
    let mut data = vec![f64::NAN; lines * leading];
    for line in 0..lines {
        for at in 0..length {
            let (i, j) = if by_rows { (line, at) } else { (at, line) };
            data[line * leading + at] = element(seed, i, j);
        }
    }
    Stored { data, leading }
}

struct Case {
    layout: c_int,
    flags: [c_int; 2],
    shape: (usize, usize, usize),
    alpha: f64,
    beta: f64,
}

impl Case {
    /// Runs the case in f32 and f64 and compares with the definition; whole numbers make both exact.
    fn check(&self) {
        let (m, n, k) = self.shape;
        let by_rows = self.layout == ROW_MAJOR;
        let a = store(1, m, k, by_rows != (self.flags[0] != NO_TRANSPOSE));
        let b = store(2, k, n, by_rows != (self.flags[1] != NO_TRANSPOSE));
        let c = store(3, m, n, by_rows);
        let mut wide = c.data.clone();
        let mut narrow: Vec<f32> = c.data.iter().map(|v| *v as f32).collect();
        if self.beta == 0.0 {
            wide.fill(f64::NAN);
            narrow.fill(f32::NAN);
        }
        let (a32, b32) = (to_f32(&a.data), to_f32(&b.data));
        let [m_int, n_int, k_int, lda, ldb, ldc] = [m, n, k, a.leading, b.leading, c.leading].map(|v| v as c_int);
        let [fa, fb] = self.flags;
        let (alpha, beta) = (self.alpha, self.beta);
        // SAFETY: `store` sized the buffers by the same layout and flags.
        let status = unsafe {
            [
                mlxk_dgemm(
                    self.layout,
                    fa,
                    fb,
                    m_int,
                    n_int,
                    k_int,
                    alpha,
                    a.data.as_ptr(),
                    lda,
                    b.data.as_ptr(),
                    ldb,
                    beta,
                    wide.as_mut_ptr(),
                    ldc,
                ),
                mlxk_sgemm(
                    self.layout,
                    fa,
                    fb,
                    m_int,
                    n_int,
                    k_int,
                    alpha as f32,
                    a32.as_ptr(),
                    lda,
                    b32.as_ptr(),
                    ldb,
                    beta as f32,
                    narrow.as_mut_ptr(),
                    ldc,
                ),
            ]
        };
        assert_eq!(status, [0, 0]);
        for i in 0..m {
            for j in 0..n {
                let sum: f64 = (0..k).map(|p| element(1, i, p) * element(2, p, j)).sum();
                let old = if beta == 0.0 { 0.0 } else { beta * element(3, i, j) };
                let expected = alpha * sum + old;
                let at = if by_rows { i * c.leading + j } else { j * c.leading + i };
                let place = format!("{:?} layout {} flags {:?} at {i},{j}", self.shape, self.layout, self.flags);
                assert_eq!(wide[at], expected, "f64 {place}");
                assert_eq!(f64::from(narrow[at]), expected, "f32 {place}");
            }
        }
        let gaps = wide.chunks(c.leading).all(|line| line[c.leading - 3..].iter().all(|v| v.is_nan()));
        assert!(gaps, "{:?} wrote past its rows", self.shape);
    }
}

fn to_f32(data: &[f64]) -> Vec<f32> {
    data.iter().map(|v| *v as f32).collect()
}

#[test]
fn products_equal_the_definition_in_every_layout_transposition_and_scale() {
    with_each_isa(|_| {
        for shape in SHAPES {
            for layout in [ROW_MAJOR, COLUMN_MAJOR] {
                for flag_a in [NO_TRANSPOSE, TRANSPOSE] {
                    for flag_b in [NO_TRANSPOSE, TRANSPOSE, CONJUGATE_TRANSPOSE] {
                        for (alpha, beta) in [(1.0, 0.0), (0.5, 1.0), (-2.0, 0.5), (0.0, 3.0), (0.0, 0.0)] {
                            Case { layout, flags: [flag_a, flag_b], shape, alpha, beta }.check();
                        }
                    }
                }
            }
        }
    });
}

/// A call of a 2 × 2 × 2 product with these integers; returns the status and C.
fn call(layout: c_int, flags: [c_int; 2], sizes: [c_int; 3], leading: [c_int; 3]) -> (c_int, [f32; 4]) {
    let (a, b, mut c) = ([1f32, 2.0, 3.0, 4.0], [1f32, 0.0, 0.0, 1.0], [9f32; 4]);
    // SAFETY: the tests pass sizes that fit, or a wrong argument, with which nothing is touched.
    let status = unsafe {
        mlxk_sgemm(
            layout,
            flags[0],
            flags[1],
            sizes[0],
            sizes[1],
            sizes[2],
            1.0,
            a.as_ptr(),
            leading[0],
            b.as_ptr(),
            leading[1],
            0.0,
            c.as_mut_ptr(),
            leading[2],
        )
    };
    (status, c)
}

#[test]
fn each_wrong_argument_is_named_by_its_position_and_leaves_c_alone() {
    let plain = [NO_TRANSPOSE; 2];
    let two = [2; 3];
    assert_eq!(call(ROW_MAJOR, plain, two, two), (0, [1.0, 2.0, 3.0, 4.0]));
    let wrong = [
        (1, call(100, plain, two, two)),
        (2, call(ROW_MAJOR, [0, NO_TRANSPOSE], two, two)),
        (3, call(ROW_MAJOR, [NO_TRANSPOSE, 114], two, two)),
        (4, call(ROW_MAJOR, plain, [-1, 2, 2], two)),
        (5, call(ROW_MAJOR, plain, [2, -1, 2], two)),
        (6, call(ROW_MAJOR, plain, [2, 2, -1], two)),
        (9, call(ROW_MAJOR, plain, two, [1, 2, 2])),
        (9, call(ROW_MAJOR, plain, [0, 2, 0], [0, 2, 2])),
        (11, call(COLUMN_MAJOR, plain, two, [2, 1, 2])),
        (14, call(ROW_MAJOR, plain, two, [2, 2, 1])),
    ];
    for (position, result) in wrong {
        assert_eq!(result, (position, [9.0; 4]));
    }
}

#[test]
fn a_null_matrix_is_an_error_only_where_it_would_be_used() {
    let one = [1f32];
    let mut c = [2f32];
    let product = |alpha: f32, a: *const f32, b: *const f32, c: *mut f32| {
        // SAFETY: sizes are 1, and null pointers are what is tested.
        unsafe { mlxk_sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, 1, 1, 1, alpha, a, 1, b, 1, 2.0, c, 1) }
    };
    let null = std::ptr::null();
    assert_eq!(product(1.0, null, one.as_ptr(), c.as_mut_ptr()), 8);
    assert_eq!(product(1.0, one.as_ptr(), null, c.as_mut_ptr()), 10);
    assert_eq!(product(1.0, one.as_ptr(), one.as_ptr(), std::ptr::null_mut()), 13);
    assert_eq!(product(0.0, null, null, c.as_mut_ptr()), 0);
    assert_eq!(c, [4.0]);
}

#[test]
fn infinities_and_nan_in_the_operands_reach_the_result() {
    let a = [f32::INFINITY, 1.0, f32::NAN, 1.0, 1.0, 1.0];
    let b = [1f32, 0.5, 2.0, 0.5];
    let mut c = [0f32; 6];
    // SAFETY: A is 3 × 2, B 2 × 2, C 3 × 2.
    let status = unsafe {
        mlxk_sgemm(
            ROW_MAJOR,
            NO_TRANSPOSE,
            NO_TRANSPOSE,
            3,
            2,
            2,
            1.0,
            a.as_ptr(),
            2,
            b.as_ptr(),
            2,
            0.0,
            c.as_mut_ptr(),
            2,
        )
    };
    assert_eq!(status, 0);
    assert_eq!(c[..2], [f32::INFINITY, f32::INFINITY]);
    assert!(c[2].is_nan() && c[3].is_nan());
    assert_eq!(c[4..], [3.0, 1.0]);
}

/// The bits of A·B with the flags given, on `threads` threads.
fn bits(threads: usize, (m, n, k): (usize, usize, usize), flags: [c_int; 2]) -> Vec<u32> {
    set_threads(threads);
    let (a, b, mut c) = (noise(m * k, 1), noise(k * n, 2), noise(m * n, 3));
    let lda = if flags[0] == NO_TRANSPOSE { k } else { m };
    let ldb = if flags[1] == NO_TRANSPOSE { n } else { k };
    let [m, n, k, lda, ldb] = [m, n, k, lda, ldb].map(|v| v as c_int);
    // SAFETY: the buffers have the sizes given.
    let status = unsafe {
        mlxk_sgemm(
            ROW_MAJOR,
            flags[0],
            flags[1],
            m,
            n,
            k,
            0.7,
            a.as_ptr(),
            lda,
            b.as_ptr(),
            ldb,
            0.3,
            c.as_mut_ptr(),
            n,
        )
    };
    assert_eq!(status, 0);
    c.into_iter().map(f32::to_bits).collect()
}

#[test]
fn products_are_the_same_to_the_last_bit_on_any_number_of_threads() {
    let _held = hold_settings();
    let shapes = [
        (512, 576, 576),
        (512, 8, 1536),
        (512, 576, 8),
        (8, 576, 512),
        (512, 512, 64),
        (130, 150, 3000),
        (1, 2049, 333),
        (700, 1, 1025),
        (65, 9000, 70),
        (2, 5000, 300),
        (5000, 3, 300),
    ];
    for shape in shapes {
        for flags in [[NO_TRANSPOSE; 2], [NO_TRANSPOSE, TRANSPOSE], [TRANSPOSE, NO_TRANSPOSE]] {
            let expected = bits(1, shape, flags);
            for threads in [2, 4] {
                assert!(bits(threads, shape, flags) == expected, "{shape:?} {flags:?} on {threads} threads");
            }
        }
    }
    set_threads(0);
}

#[cfg(export_blas)]
#[test]
fn calls_through_the_cblas_names_are_counted_and_wrong_ones_do_not_end_the_process() {
    use super::{cblas_dgemm, cblas_sgemm};
    use crate::{dgemm_calls, sgemm_calls};
    let (singles, doubles) = (sgemm_calls(), dgemm_calls());
    let (mut c, mut d) = ([0f32], [0f64]);
    // SAFETY: sizes are 1; the second call has a wrong layout and touches nothing.
    unsafe {
        cblas_sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, 1, 1, 1, 2.0, &3.0, 1, &4.0, 1, 0.0, c.as_mut_ptr(), 1);
        cblas_sgemm(7, NO_TRANSPOSE, TRANSPOSE, 1, 1, 1, 2.0, &5.0, 1, &4.0, 1, 0.0, c.as_mut_ptr(), 1);
        cblas_dgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, 1, 1, 1, 2.0, &0.5, 1, &4.0, 1, 0.0, d.as_mut_ptr(), 1);
    }
    assert_eq!((c, d), ([24.0], [4.0]));
    assert_eq!((sgemm_calls() - singles, dgemm_calls() - doubles), (2, 1));
}

#[cfg(export_blas)]
#[test]
fn the_name_of_the_blas_says_how_many_threads_it_has() {
    let _held = hold_settings();
    set_threads(2);
    assert!(blas_name().starts_with("mlx-cpu-kernels (gemm, ") && blas_name().ends_with(", 2 threads)"));
    set_threads(1);
    assert!(blas_name().ends_with(", 1 thread)"));
    set_threads(0);
}

#[cfg(not(export_blas))]
#[test]
fn a_build_for_another_blas_names_that_one() {
    assert_eq!(blas_name(), env!("MLX_CPU_KERNELS_OTHER_BLAS"));
}
