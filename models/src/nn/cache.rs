//! Keys and values of the tokens seen so far.

use mlx_rs_core::{Array, Error, Result, ops};

/// Buffers grow by this many positions, so that decoding writes in place most of the time.
const STEP: i32 = 256;

/// One layer's keys and values, `[B, Hkv, offset, D]` each.
#[derive(Clone, Default)]
pub struct KvCache {
    buffers: Option<(Array, Array)>,
    offset: i32,
}

impl KvCache {
    /// Positions held.
    pub fn offset(&self) -> i32 {
        self.offset
    }

    /// Appends `k` and `v` `[B, Hkv, L, D]` and returns all positions so far.
    ///
    /// # Errors
    /// Another batch size, head count, head dimension or dtype than before; the cache then stays as it was.
    pub fn update(&mut self, k: &Array, v: &Array) -> Result<(Array, Array)> {
        self.check(k, v)?;
        let end = self.offset + k.dim(2)?;
        // Taken out of self, so that MLX may write into the old buffer instead of copying it.
        let (mut keys, mut values) = match self.buffers.take() {
            Some((keys, values)) if keys.dim(2)? >= end => (keys, values),
            Some((keys, values)) => (self.grown(&keys, k, end)?, self.grown(&values, v, end)?),
            None => (self.grown_from_nothing(k, end)?, self.grown_from_nothing(v, end)?),
        };
        keys = write(&keys, k, self.offset, end)?;
        values = write(&values, v, self.offset, end)?;
        self.offset = end;
        let seen = (prefix(&keys, end)?, prefix(&values, end)?);
        self.buffers = Some((keys, values));
        Ok(seen)
    }

    /// Checked before the buffers are taken out, and because MLX would broadcast a batch of one.
    fn check(&self, k: &Array, v: &Array) -> Result<()> {
        let Some((keys, values)) = &self.buffers else { return Ok(()) };
        for (new, held) in [(k, keys), (v, values)] {
            let fits = |axis: i32| Ok(new.dim(axis)? == held.dim(axis)?);
            if !(fits(0)? && fits(1)? && fits(3)? && new.dim(2)? == k.dim(2)? && new.dtype() == held.dtype()) {
                let message = format!(
                    "{:?} {} does not continue {:?} {}",
                    new.shape(),
                    new.dtype().name(),
                    held.shape(),
                    held.dtype().name()
                );
                return Err(Error::argument("kv_cache", message));
            }
        }
        Ok(())
    }

    fn grown(&self, buffer: &Array, like: &Array, end: i32) -> Result<Array> {
        let kept = prefix(buffer, self.offset)?;
        let room = blank(like, capacity(end) - self.offset)?;
        ops::concatenate(&[kept, room], 2)
    }

    fn grown_from_nothing(&self, like: &Array, end: i32) -> Result<Array> {
        blank(like, capacity(end))
    }

    /// The arrays to evaluate, so that the graph of a step does not outlive it.
    pub fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.buffers.iter().flat_map(|(keys, values)| [keys, values])
    }
}

fn capacity(end: i32) -> i32 {
    (end + STEP - 1) / STEP * STEP
}

/// Zeros `[B, Hkv, length, D]` in the dtype of `like`.
fn blank(like: &Array, length: i32) -> Result<Array> {
    ops::zeros(&[like.dim(0)?, like.dim(1)?, length, like.dim(3)?], like.dtype())
}

/// `buffer[:, :, from..to] = part`.
fn write(buffer: &Array, part: &Array, from: i32, to: i32) -> Result<Array> {
    let stop = [buffer.dim(0)?, buffer.dim(1)?, to, buffer.dim(3)?];
    ops::slice_update(buffer, part, &[0, 0, from, 0], &stop, &[1, 1, 1, 1])
}

/// `buffer[:, :, ..length]`.
fn prefix(buffer: &Array, length: i32) -> Result<Array> {
    let stop = [buffer.dim(0)?, buffer.dim(1)?, length, buffer.dim(3)?];
    ops::slice(buffer, &[0, 0, 0, 0], &stop, &[1, 1, 1, 1])
}
