//! The modules beside `ops`: random numbers, linear algebra, Fourier transforms, fused pieces.

use mlx_rs_core::fast::{self, AttentionMask};
use mlx_rs_core::linalg::{self, Order};
use mlx_rs_core::{Array, Dtype, Error, Result, fft, random};

use super::{Entry, entries, same_name};

pub const ENTRIES: &[&[Entry]] = &[RANDOM, LINALG, FFT_SIZES, FFT_ONE_AXIS, FFT_AXES, FAST];

const RANDOM: &[Entry] = entries! {
    "random_bernoulli" => random::bernoulli(0 1 2);
    "random_bits" => random::bits(0 1 2);
    "random_categorical" => random::categorical(0 1 2);
    "random_categorical_num_samples" => random::categorical_num_samples(0 1 2 3);
    "random_categorical_shape" => random::categorical_shape(0 1 2 3);
    "random_gumbel" => random::gumbel(0 1 2);
    "random_key" => random::key(0);
    "random_laplace" => random::laplace(0 1 2 3 4);
    "random_multivariate_normal" => random::multivariate_normal(0 1 2 3 4);
    "random_normal" => random::normal(0 1 2 3 4);
    "random_normal_broadcast" => random::normal_array(0 1 2 3 4);
    "random_permutation" => random::permutation(0 1 2);
    "random_permutation_arange" => random::permutation_arange(0 1);
    "random_randint" => random::randint_array(0 1 2 3 4);
    "random_seed" => self::seeded(0);
    "random_split" => random::split_pair(0);
    "random_split_num" => random::split(0 1);
    "random_truncated_normal" => random::truncated_normal(0 1 2 3 4);
    "random_uniform" => random::uniform_array(0 1 2 3 4);
};

/// What the sequence gives after a seed.
fn seeded(seed: u64) -> Result<Array> {
    random::seed(seed)?;
    random::uniform(0.0, 1.0, &[3], Dtype::Float32, None)
}

const LINALG: &[Entry] = entries! {
    "linalg_cholesky" => linalg::cholesky(0 1);
    "linalg_cholesky_inv" => linalg::cholesky_inv(0 1);
    "linalg_cross" => linalg::cross(0 1 2);
    "linalg_det" => linalg::det(0);
    "linalg_eig" => linalg::eig(0);
    "linalg_eigh" => linalg::eigh(0 1);
    "linalg_eigvals" => linalg::eigvals(0);
    "linalg_eigvalsh" => linalg::eigvalsh(0 1);
    "linalg_inv" => linalg::inv(0);
    "linalg_lu" => linalg::lu(0);
    "linalg_lu_factor" => linalg::lu_factor(0);
    "linalg_norm" => self::norm(0 1 2 3);
    "linalg_norm_l2" => linalg::norm(0 (Order::L2) 1 2);
    "linalg_norm_matrix" => self::norm_named(0 1 2 3);
    "linalg_pinv" => linalg::pinv(0);
    "linalg_qr" => linalg::qr(0);
    "linalg_slogdet" => linalg::slogdet(0);
    "linalg_solve" => linalg::solve(0 1);
    "linalg_solve_triangular" => linalg::solve_triangular(0 1 2);
    "linalg_svd" => linalg::svd(0 1);
    "linalg_tri_inv" => linalg::tri_inv(0 1);
};

fn norm(a: &Array, order: f64, axes: Option<&[i32]>, keepdims: bool) -> Result<Array> {
    linalg::norm(a, Order::P(order), axes, keepdims)
}

fn norm_named(a: &Array, order: &str, axes: Option<&[i32]>, keepdims: bool) -> Result<Array> {
    linalg::norm(a, Order::Named(order), axes, keepdims)
}

const FFT_SIZES: &[Entry] = entries! {
    "fft_fftfreq" => fft::fftfreq(0 1);
    "fft_fftshift" => fft::fftshift(0 1);
    "fft_ifftshift" => fft::ifftshift(0 1);
    "fft_rfftfreq" => fft::rfftfreq(0 1);
};

const FFT_ONE_AXIS: &[Entry] = same_name! { "fft_" fft (0 1 2 3): fft ifft rfft irfft };

const FFT_AXES: &[Entry] = same_name! { "fft_" fft (0 1 2 3):
    fft2 fftn ifft2 ifftn rfft2 rfftn irfft2 irfftn
};

const FAST: &[Entry] = entries! {
    "fast_cross_entropy" => fast::cross_entropy(0 1);
    "fast_layer_norm" => fast::layer_norm(0 1 2 3);
    "fast_rms_norm" => fast::rms_norm(0 1 2);
    "fast_rope" => fast::rope(0 1 2 3 4 5 6);
    "fast_rope_dynamic" => fast::rope_dynamic(0 1 2 3 4 5 6);
    "fast_scaled_dot_product_attention" => self::attention(0 1 2 3 4 5 6 7);
};

#[allow(clippy::too_many_arguments, reason = "the arguments of the C function")]
fn attention(
    q: &Array,
    k: &Array,
    v: &Array,
    scale: f32,
    mode: &str,
    mask: Option<&Array>,
    sinks: Option<&Array>,
    force_fused: bool,
) -> Result<Array> {
    let mask = match (mode, mask) {
        ("causal", None) => AttentionMask::Causal,
        ("", None) => AttentionMask::None,
        (_, Some(mask)) => AttentionMask::Array(mask),
        // Our enum cannot say it.
        (other, None) => {
            return Err(Error::argument("scaled_dot_product_attention", format!("no mask mode {other:?}")));
        }
    };
    if force_fused {
        fast::scaled_dot_product_attention_fused(q, k, v, scale, mask, sinks)
    } else {
        fast::scaled_dot_product_attention(q, k, v, scale, mask, sinks)
    }
}
