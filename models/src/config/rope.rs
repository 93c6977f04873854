//! Rotary positions: base, layout and scaling, with mlx-lm's names and defaults.

use super::fields::Fields;
use crate::error::Result;

/// The scalings that are known, as an error lists them.
const KNOWN: &str = "one of: default, linear, dynamic, llama3";

/// How positions turn queries and keys.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies; pair `i` of `d` dimensions turns by `position / theta^(2i/d)`. Default 10000.
    pub theta: f64,
    /// True when neighbouring dimensions form a pair, false when dimension `i` pairs with `i + d/2`. Default false.
    pub traditional: bool,
    /// How longer contexts are reached.
    pub scaling: RopeScaling,
}

/// Scaling of the rotary frequencies.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    /// None.
    None,
    /// Positions divided by `factor`.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// A base that grows with the sequence: with `n = max(length + offset, max_position_embeddings)`, the base is
    /// `theta · (factor · n / max_position_embeddings − (factor − 1))^(d / (d − 2))`.
    Dynamic {
        /// The factor.
        factor: f64,
    },
    /// Llama 3's: long waves are stretched by `factor`, short ones kept, those between blended.
    Llama3 {
        /// Stretch of the long waves.
        factor: f64,
        /// Waves longer than `original_max_position_embeddings / low_freq_factor` are long. Default 1.
        low_freq_factor: f64,
        /// Waves shorter than `original_max_position_embeddings / high_freq_factor` are short. Default 4.
        high_freq_factor: f64,
        /// Context of the unscaled model. Default 8192.
        original_max_position_embeddings: usize,
    },
    /// A factor for each pair, by which its wave length is multiplied: pair `i` turns by
    /// `position / (theta^(2i/d) · factors[i])`. GGUF files state Llama 3's scaling so.
    Factors {
        /// `d / 2` factors.
        factors: Vec<f32>,
    },
}

impl RopeConfig {
    /// Reads `rope_theta`, `rope_scaling`, `rope_traditional`, and the newer `rope_parameters`, which nests both.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self> {
        let nested = fields.object("rope_parameters")?;
        let scaling = match fields.object("rope_scaling")? {
            Some(scaling) => Some(scaling),
            None => nested.clone(),
        };
        let theta = match fields.positive("rope_theta")? {
            Some(theta) => Some(theta),
            None => nested.as_ref().map(|nested| nested.positive("rope_theta")).transpose()?.flatten(),
        };
        Ok(Self {
            theta: theta.unwrap_or(10_000.0),
            traditional: fields.flag("rope_traditional")?.unwrap_or(false),
            scaling: scaling.map_or(Ok(RopeScaling::None), |scaling| RopeScaling::read(&scaling))?,
        })
    }
}

impl RopeScaling {
    fn read(fields: &Fields<'_>) -> Result<Self> {
        let key = if fields.get("type").is_some() { "type" } else { "rope_type" };
        match fields.text(key)?.unwrap_or("default") {
            "default" => Ok(Self::None),
            "linear" => Ok(Self::Linear { factor: fields.required_positive("factor")? }),
            "dynamic" => Ok(Self::Dynamic { factor: fields.required_positive("factor")? }),
            "llama3" => Self::read_llama3(fields),
            other => Err(fields.wrong(key, format!("\"{other}\""), KNOWN)),
        }
    }

    fn read_llama3(fields: &Fields<'_>) -> Result<Self> {
        let low = fields.positive("low_freq_factor")?.unwrap_or(1.0);
        let high = fields.positive("high_freq_factor")?.unwrap_or(4.0);
        if high <= low {
            return Err(fields.wrong(
                "high_freq_factor",
                high.to_string(),
                format!("more than low_freq_factor ({low})"),
            ));
        }
        Ok(Self::Llama3 {
            factor: fields.required_positive("factor")?,
            low_freq_factor: low,
            high_freq_factor: high,
            original_max_position_embeddings: fields.size("original_max_position_embeddings")?.unwrap_or(8192),
        })
    }
}
