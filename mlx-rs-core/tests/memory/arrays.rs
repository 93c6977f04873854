//! Arrays, graphs, traces and limits.

use mlx_rs_core::transforms::{self, Compiled};
use mlx_rs_core::{Array, Dtype, Result, memory, ops};

use super::alone;

const MIB: usize = 1 << 20;

/// A filled array of one MiB.
fn mebibyte() -> Result<Array> {
    let array = ops::full(&[MIB as i32 / 4], &Array::scalar(1.0f32)?, Dtype::Float32)?;
    // Not a broadcast view of one element.
    let array = ops::contiguous(&array, false)?;
    array.eval()?;
    Ok(array)
}

fn active() -> usize {
    memory::get_active_memory().unwrap()
}

#[test]
fn an_array_is_freed_with_its_last_reference() {
    alone("memory::arrays::an_array_is_freed_with_its_last_reference", || {
        let start = active();
        let array = mebibyte().unwrap();
        let with_one = active();
        assert!((MIB..MIB + 65536).contains(&(with_one - start)), "{with_one} - {start}");
        let second = array.clone();
        assert_eq!(active(), with_one, "a clone is a reference, not a copy");
        drop(array);
        assert_eq!(active(), with_one);
        drop(second);
        assert_eq!(active(), start);
    });
}

#[test]
fn an_array_of_a_graph_lives_until_the_graph_is_evaluated_or_dropped() {
    alone("memory::arrays::an_array_of_a_graph_lives_until_the_graph_is_evaluated_or_dropped", || {
        let start = active();
        let graph = ops::sum(&mebibyte().unwrap(), None, false).unwrap();
        assert!(active() - start >= MIB);
        assert_eq!(graph.item::<f32>().unwrap(), (MIB / 4) as f32);
        assert!(active() - start < 65536, "evaluation cuts the graph");
        drop(ops::sum(&mebibyte().unwrap(), None, false).unwrap());
        assert!(active() - start < 65536);
    });
}

#[test]
fn failed_and_panicked_calls_leave_nothing_behind() {
    alone("memory::arrays::failed_and_panicked_calls_leave_nothing_behind", || {
        let start = active();
        for _ in 0..50 {
            // A new one each time: whatever keeps a reference keeps a MiB.
            let input = [mebibyte().unwrap()];
            let fails = |x: &[Array]| (&x[0] * 2.0)?.reshape(&[3]).map(|x| vec![x]);
            transforms::grad(fails, &[0], &input).unwrap_err();
            let panics = |x: &[Array]| -> Result<Vec<Array>> {
                let _held = (&x[0] * 3.0)?;
                std::panic::panic_any(1u8)
            };
            let caught = std::panic::AssertUnwindSafe(|| transforms::grad(panics, &[0], &input));
            std::panic::catch_unwind(caught).unwrap_err();
        }
        assert_eq!(active(), start);
    });
}

#[test]
fn a_compiled_function_frees_its_traces_and_constants_when_dropped() {
    alone("memory::arrays::a_compiled_function_frees_its_traces_and_constants_when_dropped", || {
        let input = [Array::scalar(2.0f32).unwrap()];
        input[0].eval().unwrap();
        let start = active();
        for _ in 0..20 {
            let constant = mebibyte().unwrap();
            let f = Compiled::new(move |x: &[Array]| Ok(vec![ops::sum(&(&x[0] * &constant)?, None, false)?]), false);
            let f = f.unwrap();
            assert_eq!(f.call(&input).unwrap()[0].item::<f32>().unwrap(), (MIB / 2) as f32);
            assert!(active() - start >= MIB, "the constant is alive while the function is");
        }
        assert_eq!(active(), start);
    });
}

#[test]
fn peak_cache_and_limits_can_be_read_and_set() {
    alone("memory::arrays::peak_cache_and_limits_can_be_read_and_set", || {
        memory::reset_peak_memory().unwrap();
        drop(mebibyte().unwrap());
        assert!(memory::get_peak_memory().unwrap() >= MIB);
        assert!(memory::get_cache_memory().unwrap() >= MIB, "the freed buffer is kept for reuse");
        memory::clear_cache().unwrap();
        assert_eq!(memory::get_cache_memory().unwrap(), 0);
        memory::reset_peak_memory().unwrap();
        assert!(memory::get_peak_memory().unwrap() < MIB);

        memory::set_cache_limit(0).unwrap();
        drop(mebibyte().unwrap());
        assert_eq!(memory::get_cache_memory().unwrap(), 0, "a limit of zero keeps nothing");
        assert_eq!(memory::set_cache_limit(5 * MIB).unwrap(), 0);
        assert_eq!(memory::set_cache_limit(MIB).unwrap(), 5 * MIB);

        let former = memory::get_memory_limit().unwrap();
        assert_eq!(memory::set_memory_limit(512 * MIB).unwrap(), former);
        assert_eq!(memory::get_memory_limit().unwrap(), 512 * MIB);
        assert_eq!(memory::set_memory_limit(former).unwrap(), 512 * MIB);
    });
}
