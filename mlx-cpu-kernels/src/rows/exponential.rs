//! exp and sigmoid in f32, branch-free so that loops over them vectorise.
//!
//! exp(x) = 2ⁿ · exp(r) with n = round(x / ln 2) and r = x − n · ln 2 in [−ln 2 / 2, ln 2 / 2]. ln 2 is split in two, its
//! first part short enough that n · part is exact; exp(r) is a polynomial of degree 7. The error stays under 2 ulp.

/// ln 2 to 9 bits, and the rest.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// 1.5 · 2²³: adding it rounds to a whole number, which then stands in the low bits.
const ROUND: f32 = 12_582_912.0;
/// Above this exp exceeds the range of f32.
const OVERFLOW: f32 = 88.722_83;
/// Below this exp is subnormal.
const UNDERFLOW: f32 = -87.33;
/// Below this a softmax weight is zero: far from subnormal, so that its products with small gradients stay normal too.
const WEIGHT_FLOOR: f32 = -80.0;
/// exp of [`WEIGHT_FLOOR`].
pub(crate) const SMALLEST_WEIGHT: f32 = 1.804_851_4e-35;

#[inline(always)]
fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// eˣ, with zero for x < `floor` (at least [`UNDERFLOW`]); NaN gives NaN.
#[inline(always)]
fn exp_above<const FMA: bool>(x: f32, floor: f32) -> f32 {
    let shifted = multiply_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = multiply_add::<FMA>(n, -LN_2_HIGH, x);
    let r = multiply_add::<FMA>(n, -LN_2_LOW, r);
    let p = 1.984_127e-4;
    let p = multiply_add::<FMA>(p, r, 1.388_888_9e-3);
    let p = multiply_add::<FMA>(p, r, 8.333_334e-3);
    let p = multiply_add::<FMA>(p, r, 4.166_666_8e-2);
    let p = multiply_add::<FMA>(p, r, 1.666_666_7e-1);
    let p = multiply_add::<FMA>(p, r, 0.5);
    let y = 1.0 + multiply_add::<FMA>(p, r * r, r);
    // The low bits of `shifted` hold n; its own high bits leave at the top. Adding n to y's exponent multiplies by 2ⁿ and,
    // unlike a factor 2ⁿ, reaches the largest results, where n is 128 and y below 1.
    let scaled = f32::from_bits(y.to_bits().wrapping_add(shifted.to_bits() << 23));
    let finite = if x < floor { 0.0 } else { scaled };
    // x + ∞ is ∞ for a large x and NaN for NaN.
    if x <= OVERFLOW { finite } else { x + f32::INFINITY }
}

/// eˣ within 2 ulp; a result that would be subnormal is 0.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    exp_above::<FMA>(x, UNDERFLOW)
}

/// eˣ for the weights of a softmax: 0 below e⁻⁸⁰.
#[inline(always)]
pub(crate) fn exp_weight<const FMA: bool>(x: f32) -> f32 {
    exp_above::<FMA>(x, WEIGHT_FLOOR)
}

/// 1 / (1 + e⁻ˣ); a result that would be subnormal is 0.
#[inline(always)]
pub(crate) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    flush(1.0 / (1.0 + exp::<FMA>(-x)))
}

/// `x`, or 0 when it is subnormal.
#[inline(always)]
pub(crate) fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0 } else { x }
}
