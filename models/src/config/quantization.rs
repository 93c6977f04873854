//! The `quantization` entry: a default form and exceptions by module.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::Fields;
use crate::error::{Result, describe};

/// How a group of weights is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantMode {
    /// A scale and a bias per group.
    Affine,
    /// 4-bit floats with a shared power of two.
    Mxfp4,
    /// 8-bit floats with a shared power of two.
    Mxfp8,
    /// 4-bit floats with an 8-bit float scale.
    Nvfp4,
}

impl QuantMode {
    /// MLX's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Affine => "affine",
            Self::Mxfp4 => "mxfp4",
            Self::Mxfp8 => "mxfp8",
            Self::Nvfp4 => "nvfp4",
        }
    }

    /// Group size and bits that MLX takes when none are stated.
    fn defaults(self) -> (usize, u32) {
        match self {
            Self::Affine => (64, 4),
            Self::Mxfp4 => (32, 4),
            Self::Mxfp8 => (32, 8),
            Self::Nvfp4 => (16, 4),
        }
    }
}

/// The form of one module's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantSpec {
    /// Values per group, along the input axis.
    pub group_size: usize,
    /// Bits per value.
    pub bits: u32,
    /// The code.
    pub mode: QuantMode,
}

/// The forms of all modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantizationConfig {
    /// For modules that are not named.
    pub default: QuantSpec,
    /// By module path; `None` means that the module is not quantised.
    pub overrides: BTreeMap<String, Option<QuantSpec>>,
}

impl QuantizationConfig {
    /// The form of the module `name`, `None` when it is an unquantised exception.
    pub fn spec_for(&self, name: &str) -> Option<QuantSpec> {
        self.overrides.get(name).copied().unwrap_or(Some(self.default))
    }

    /// Reads `quantization`, else `quantization_config`.
    pub(super) fn read(outer: &Fields<'_>) -> Result<Option<Self>> {
        let (key, fields) = match (outer.object("quantization")?, outer.object("quantization_config")?) {
            (Some(fields), _) => ("quantization", fields),
            (None, Some(fields)) => ("quantization_config", fields),
            (None, None) => return Ok(None),
        };
        if let Some(method) = fields.text("quant_method")?
            && fields.get("group_size").is_none()
        {
            return Err(fields
                .wrong("quant_method", format!("\"{method}\""), "MLX's own quantisation (group_size, bits, mode)")
                .with_hint("convert the model for MLX, or take the unquantised one"));
        }
        let default = spec(&fields, None)?;
        let mut overrides = BTreeMap::new();
        for (name, value) in fields.entries() {
            if matches!(name.as_str(), "group_size" | "bits" | "mode" | "quant_method" | "linear_class") {
                continue;
            }
            let entry = match value {
                Value::Bool(quantised) => quantised.then_some(default),
                Value::Object(_) => fields.object(name)?.map(|module| spec(&module, Some(default))).transpose()?,
                other => {
                    let message = outer.wrong(
                        &format!("{key}.{name}"),
                        describe(other),
                        "true, false or an object with group_size and bits",
                    );
                    return Err(message);
                }
            };
            overrides.insert(name.clone(), entry);
        }
        Ok(Some(Self { default, overrides }))
    }
}

fn spec(fields: &Fields<'_>, default: Option<QuantSpec>) -> Result<QuantSpec> {
    let mode = match fields.text("mode")? {
        None => default.map_or(QuantMode::Affine, |default| default.mode),
        Some("affine") => QuantMode::Affine,
        Some("mxfp4") => QuantMode::Mxfp4,
        Some("mxfp8") => QuantMode::Mxfp8,
        Some("nvfp4") => QuantMode::Nvfp4,
        Some(other) => return Err(fields.wrong("mode", format!("\"{other}\""), "affine, mxfp4, mxfp8 or nvfp4")),
    };
    let inherited = default.filter(|default| default.mode == mode);
    let (group_size, bits) = inherited.map_or(mode.defaults(), |default| (default.group_size, default.bits));
    let group_size = fields.size("group_size")?.unwrap_or(group_size);
    let bits = fields.size("bits")?.map_or(bits, |bits| bits as u32);
    let (bits_wanted, groups_wanted): (&[u32], &[usize]) = match mode {
        QuantMode::Affine => (&[2, 3, 4, 5, 6, 8], &[32, 64, 128]),
        QuantMode::Mxfp4 => (&[4], &[32]),
        QuantMode::Mxfp8 => (&[8], &[32]),
        QuantMode::Nvfp4 => (&[4], &[16]),
    };
    if !bits_wanted.contains(&bits) {
        return Err(fields.wrong("bits", bits.to_string(), format!("one of {bits_wanted:?} for {}", mode.name())));
    }
    if !groups_wanted.contains(&group_size) {
        let wanted = format!("one of {groups_wanted:?} for {}", mode.name());
        return Err(fields.wrong("group_size", group_size.to_string(), wanted));
    }
    Ok(QuantSpec { group_size, bits, mode })
}
