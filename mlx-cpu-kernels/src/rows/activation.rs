//! exp, sigmoid, SiLU and SwiGLU.
//!
//! With σ(x) = 1 / (1 + e⁻ˣ): silu(x) = x · σ(x), silu′(x) = σ(x) · (1 + x · (1 − σ(x))), swiglu(g, u) = silu(g) · u.
//! All in f32; subnormal results are 0. At x = −∞ SiLU is NaN, as its formula is in IEEE arithmetic.

use crate::rows::elementwise::{Map, map_all};
use crate::rows::{exp, flush, sigmoid};

#[derive(Clone, Copy)]
struct Exp;

impl Map<1, 1> for Exp {
    #[inline(always)]
    fn apply<const FMA: bool>(self, [x]: [f32; 1]) -> [f32; 1] {
        [exp::<FMA>(x)]
    }
}

#[derive(Clone, Copy)]
struct Sigmoid;

impl Map<1, 1> for Sigmoid {
    #[inline(always)]
    fn apply<const FMA: bool>(self, [x]: [f32; 1]) -> [f32; 1] {
        [sigmoid::<FMA>(x)]
    }
}

#[derive(Clone, Copy)]
struct Silu;

impl Map<1, 1> for Silu {
    #[inline(always)]
    fn apply<const FMA: bool>(self, [x]: [f32; 1]) -> [f32; 1] {
        [flush(x * sigmoid::<FMA>(x))]
    }
}

#[derive(Clone, Copy)]
struct SiluBackward;

impl Map<2, 1> for SiluBackward {
    #[inline(always)]
    fn apply<const FMA: bool>(self, [x, dy]: [f32; 2]) -> [f32; 1] {
        let s = sigmoid::<FMA>(x);
        [flush(dy * s * (1.0 + x * (1.0 - s)))]
    }
}

#[derive(Clone, Copy)]
struct Swiglu;

impl Map<2, 1> for Swiglu {
    #[inline(always)]
    fn apply<const FMA: bool>(self, [g, u]: [f32; 2]) -> [f32; 1] {
        [flush(g * sigmoid::<FMA>(g) * u)]
    }
}

#[derive(Clone, Copy)]
struct SwigluBackward;

impl Map<3, 2> for SwigluBackward {
    #[inline(always)]
    fn apply<const FMA: bool>(self, [g, u, dy]: [f32; 3]) -> [f32; 2] {
        let s = sigmoid::<FMA>(g);
        let dg = dy * u * s * (1.0 + g * (1.0 - s));
        let du = dy * g * s;
        [flush(dg), flush(du)]
    }
}

/// y = eˣ, within 2 ulp.
///
/// # Safety
/// `x` and `y` are valid for `len` elements; they may be the same buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_exp_f32(len: usize, x: *const f32, y: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe { map_all(len, Exp, [x], [y]) };
}

/// y = σ(x).
///
/// # Safety
/// `x` and `y` are valid for `len` elements; they may be the same buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_sigmoid_f32(len: usize, x: *const f32, y: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe { map_all(len, Sigmoid, [x], [y]) };
}

/// y = silu(x).
///
/// # Safety
/// `x` and `y` are valid for `len` elements; they may be the same buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_silu_f32(len: usize, x: *const f32, y: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe { map_all(len, Silu, [x], [y]) };
}

/// dx = dy · silu′(x).
///
/// # Safety
/// All are valid for `len` elements; `dx` may be the same buffer as `x` or `dy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_silu_backward_f32(len: usize, x: *const f32, dy: *const f32, dx: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe { map_all(len, SiluBackward, [x, dy], [dx]) };
}

/// y = silu(gate) · up.
///
/// # Safety
/// All are valid for `len` elements; `y` may be the same buffer as `gate` or `up`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_swiglu_f32(len: usize, gate: *const f32, up: *const f32, y: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe { map_all(len, Swiglu, [gate, up], [y]) };
}

/// d_gate = dy · up · silu′(gate) and d_up = dy · silu(gate).
///
/// # Safety
/// All are valid for `len` elements; `d_gate` and `d_up` differ, and each may be the same buffer as an input.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_swiglu_backward_f32(
    len: usize,
    gate: *const f32,
    up: *const f32,
    dy: *const f32,
    d_gate: *mut f32,
    d_up: *mut f32,
) {
    // SAFETY: the caller's promise.
    unsafe { map_all(len, SwigluBackward, [gate, up, dy], [d_gate, d_up]) };
}
