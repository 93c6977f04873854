//! Token embeddings, which a tied model also uses as its head.

use mlx_rs_core::{Array, Result, ops};

use super::linear::Matrix;
use super::quantized::QuantizedParts;

/// A table `[vocabulary, hidden]`.
#[derive(Clone)]
pub struct Embedding(pub Matrix);

impl Embedding {
    /// Rows of the table: ids `[…]` to `[…, hidden]`. A quantised table is dequantised for the rows taken only.
    ///
    /// # Errors
    /// Ids of a dtype that cannot index.
    pub fn lookup(&self, ids: &Array) -> Result<Array> {
        match &self.0 {
            Matrix::Dense(table) => ops::take(table, ids, Some(0)),
            Matrix::Quantized(table) => {
                let parts = table.parts();
                let rows = QuantizedParts {
                    weight: ops::take(&parts.weight, ids, Some(0))?,
                    scales: ops::take(&parts.scales, ids, Some(0))?,
                    biases: parts.biases.as_ref().map(|biases| ops::take(biases, ids, Some(0))).transpose()?,
                    ..parts.clone()
                };
                rows.dequantize()
            }
        }
    }

    /// The table as a head: `[…, hidden]` to `[…, vocabulary]`.
    ///
    /// # Errors
    /// Hidden states of another width.
    pub fn as_head(&self, hidden: &Array) -> Result<Array> {
        self.0.multiply(hidden)
    }
}
