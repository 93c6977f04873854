//! One driver for every elementwise kernel: cut into spans for the pool, copy a block in, map it, copy it out.
//!
//! The copies make an output that is also an input sound and let LLVM vectorise without checking for overlap.

use crate::isa::{self, Kernel};
use crate::threads::{Shared, for_each_span};

/// Elements of a block; a few such blocks fit the first-level cache.
const BLOCK: usize = 512;
/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 14;

/// A function of I numbers with O results.
pub(crate) trait Map<const I: usize, const O: usize>: Copy + Send + Sync {
    /// Must be `#[inline(always)]`.
    fn apply<const FMA: bool>(self, x: [f32; I]) -> [f32; O];
}

/// Writes `map` of the inputs' elements to the outputs.
///
/// # Safety
/// With `len` above zero, inputs are valid for reading and outputs for writing `len` elements; outputs are distinct, and
/// each is the same as an input or overlaps none.
pub(crate) unsafe fn map_all<const I: usize, const O: usize>(
    len: usize,
    map: impl Map<I, O>,
    inputs: [*const f32; I],
    outputs: [*mut f32; O],
) {
    let inputs = inputs.map(Shared::input);
    let outputs = outputs.map(Shared::output);
    for_each_span(len, GRAIN, |span| {
        isa::run(Span {
            map,
            len: span.len(),
            // SAFETY: span.start < len.
            inputs: inputs.map(|input| unsafe { input.get().add(span.start).cast_const() }),
            // SAFETY: as above; spans are disjoint.
            outputs: outputs.map(|output| unsafe { output.get().add(span.start) }),
        });
    });
}

struct Span<M, const I: usize, const O: usize> {
    map: M,
    len: usize,
    inputs: [*const f32; I],
    outputs: [*mut f32; O],
}

impl<M: Map<I, O>, const I: usize, const O: usize> Kernel for Span<M, I, O> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut x = [[0.0; BLOCK]; I];
        let mut y = [[0.0; BLOCK]; O];
        let mut start = 0;
        while start < self.len {
            let count = BLOCK.min(self.len - start);
            for (block, input) in x.iter_mut().zip(self.inputs) {
                // SAFETY: start + count <= len, which `map_all`'s caller vouches for.
                unsafe { std::ptr::copy_nonoverlapping(input.add(start), block.as_mut_ptr(), count) };
            }
            for i in 0..count {
                let mut arguments = [0.0; I];
                for (argument, block) in arguments.iter_mut().zip(&x) {
                    *argument = block[i];
                }
                let results = self.map.apply::<FMA>(arguments);
                for (result, block) in results.iter().zip(&mut y) {
                    block[i] = *result;
                }
            }
            for (block, output) in y.iter().zip(self.outputs) {
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), output.add(start), count) };
            }
            start += count;
        }
    }
}
