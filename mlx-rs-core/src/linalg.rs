//! Linear algebra on the last two axes; leading axes are a batch. MLX has most of it for float32 on the CPU only: use
//! [`with_device`](crate::device::with_device) where the default is a GPU.
//!
//! ```
//! use mlx_rs_core::{Array, linalg};
//! let a = Array::from_slice(&[4.0f32, 0.0, 0.0, 9.0], &[2, 2])?;
//! assert_eq!(linalg::cholesky(&a, false)?.to_vec::<f32>()?, [2.0, 0.0, 0.0, 3.0]);
//! let norm = linalg::norm(&a, linalg::Order::Named("fro"), None, false)?;
//! assert!((norm.item::<f32>()? - 97f32.sqrt()).abs() < 1e-5);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use crate::array::Array;
use crate::error::{Error, Result};
use crate::ffi::c_string;
use crate::ops::call::{list, op, pair};

/// Which norm [`norm`] takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order<'a> {
    /// The 2-norm of a vector, the Frobenius norm of a matrix (Python's `None`).
    L2,
    /// The p-norm of a vector; of a matrix 1, -1, 2, -2, or the infinities.
    P(f64),
    /// `"fro"` or `"nuc"`, of a matrix.
    Named(&'a str),
}

/// The vector norm over one axis, or the matrix norm over two; `None` takes all axes.
///
/// # Errors
/// An order that the number of axes does not have, or an axis out of range.
pub fn norm(a: &Array, order: Order, axes: Option<&[i32]>, keepdims: bool) -> Result<Array> {
    // C tells "all axes" from "no axes" by a null pointer.
    let (axes, count) = axes.map_or((std::ptr::null(), 0), |axes| (axes.as_ptr(), axes.len()));
    match order {
        Order::L2 => op!("norm", mlx_linalg_norm_l2(a, axes, count, keepdims)),
        Order::P(p) => op!("norm", mlx_linalg_norm(a, p, axes, count, keepdims)),
        Order::Named(name) => {
            let name = c_string("norm", name)?;
            op!("norm", mlx_linalg_norm_matrix(a, name.as_c_str(), axes, count, keepdims))
        }
    }
}

/// The determinant.
///
/// # Errors
/// A matrix that is not square, or another dtype than MLX takes here.
pub fn det(a: &Array) -> Result<Array> {
    op!("det", mlx_linalg_det(a))
}

/// The sign and the logarithm of the size of the determinant.
///
/// # Errors
/// A matrix that is not square, or another dtype than MLX takes here.
pub fn slogdet(a: &Array) -> Result<(Array, Array)> {
    pair!("slogdet", mlx_linalg_slogdet(a))
}

/// The cross product of vectors of 2 or 3 along `axis`.
///
/// # Errors
/// Another size, or an axis out of range.
pub fn cross(a: &Array, b: &Array, axis: i32) -> Result<Array> {
    op!("cross", mlx_linalg_cross(a, b, axis))
}

// --- Inverses and solutions -----------------------------------------------------------------------------------------

/// The inverse.
///
/// # Errors
/// A matrix that is not square, or (when it runs) a singular one.
pub fn inv(a: &Array) -> Result<Array> {
    op!("inv", mlx_linalg_inv(a))
}

/// The inverse of a triangular matrix.
///
/// # Errors
/// A matrix that is not square, or (when it runs) a singular one.
pub fn tri_inv(a: &Array, upper: bool) -> Result<Array> {
    op!("tri_inv", mlx_linalg_tri_inv(a, upper))
}

/// The Moore-Penrose inverse `[…, M, N]` of `[…, N, M]`.
///
/// # Errors
/// Fewer than 2 dimensions, or another dtype than MLX takes here.
pub fn pinv(a: &Array) -> Result<Array> {
    op!("pinv", mlx_linalg_pinv(a))
}

/// The inverse of the matrix whose Cholesky factor is `a`.
///
/// # Errors
/// A matrix that is not square, or (when it runs) a singular one.
pub fn cholesky_inv(a: &Array, upper: bool) -> Result<Array> {
    op!("cholesky_inv", mlx_linalg_cholesky_inv(a, upper))
}

/// `x` with `a x = b`.
///
/// # Errors
/// A matrix that is not square, or sizes that differ.
pub fn solve(a: &Array, b: &Array) -> Result<Array> {
    op!("solve", mlx_linalg_solve(a, b))
}

/// `x` with `a x = b` and a triangular `a`.
///
/// # Errors
/// A matrix that is not square, or sizes that differ.
pub fn solve_triangular(a: &Array, b: &Array, upper: bool) -> Result<Array> {
    op!("solve_triangular", mlx_linalg_solve_triangular(a, b, upper))
}

// --- Decompositions -------------------------------------------------------------------------------------------------

/// The Cholesky factor of a positive definite matrix, lower by default.
///
/// # Errors
/// A matrix that is not square, or (when it runs) one that is not positive definite.
pub fn cholesky(a: &Array, upper: bool) -> Result<Array> {
    op!("cholesky", mlx_linalg_cholesky(a, upper))
}

/// `(Q, R)` with `a = Q R`.
///
/// # Errors
/// Fewer than 2 dimensions, or another dtype than MLX takes here.
pub fn qr(a: &Array) -> Result<(Array, Array)> {
    pair!("qr", mlx_linalg_qr(a))
}

/// `[P, L, U]` with `a = L[P] U`; `P` holds row numbers.
///
/// # Errors
/// Fewer than 2 dimensions, or another dtype than MLX takes here.
pub fn lu(a: &Array) -> Result<Vec<Array>> {
    list!("lu", mlx_linalg_lu(a))
}

/// `(LU, pivots)`: both factors in one matrix, and the row exchanges.
///
/// # Errors
/// Fewer than 2 dimensions, or another dtype than MLX takes here.
pub fn lu_factor(a: &Array) -> Result<(Array, Array)> {
    pair!("lu_factor", mlx_linalg_lu_factor(a))
}

/// `[U, S, Vt]` with `a = U diag(S) Vt`, or `[S]` alone without `compute_uv`.
///
/// # Errors
/// Fewer than 2 dimensions, or another dtype than MLX takes here.
pub fn svd(a: &Array, compute_uv: bool) -> Result<Vec<Array>> {
    list!("svd", mlx_linalg_svd(a, compute_uv))
}

/// `(values, vectors)` of any square matrix, complex64; the vectors are columns.
///
/// # Errors
/// A matrix that is not square, or another dtype than MLX takes here.
pub fn eig(a: &Array) -> Result<(Array, Array)> {
    pair!("eig", mlx_linalg_eig(a))
}

/// The eigenvalues of any square matrix, complex64.
///
/// # Errors
/// A matrix that is not square, or another dtype than MLX takes here.
pub fn eigvals(a: &Array) -> Result<Array> {
    op!("eigvals", mlx_linalg_eigvals(a))
}

/// `(values, vectors)` of a symmetric or Hermitian matrix, of which the triangle `uplo` (`"L"` or `"U"`) is read.
///
/// # Errors
/// A matrix that is not square, or another triangle.
pub fn eigh(a: &Array, uplo: &str) -> Result<(Array, Array)> {
    let uplo = triangle("eigh", uplo)?;
    pair!("eigh", mlx_linalg_eigh(a, uplo.as_c_str()))
}

/// The eigenvalues of a symmetric or Hermitian matrix; see [`eigh`].
///
/// # Errors
/// A matrix that is not square, or another triangle.
pub fn eigvalsh(a: &Array, uplo: &str) -> Result<Array> {
    let uplo = triangle("eigvalsh", uplo)?;
    op!("eigvalsh", mlx_linalg_eigvalsh(a, uplo.as_c_str()))
}

/// LAPACK would take an unknown letter without a word.
fn triangle(op: &'static str, uplo: &str) -> Result<std::ffi::CString> {
    match uplo {
        "L" | "U" => c_string(op, uplo),
        other => Err(Error::argument(op, format!("triangle is {other:?}, wanted \"L\" or \"U\""))),
    }
}
