//! The settings, and what other tests need to change them safely.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::isa::{self, Isa};
use crate::{check_environment, set_threads, threads};

static SETTINGS: Mutex<()> = Mutex::new(());

/// Held by every test that changes the threads or the instruction set, or compares bits across calls.
pub(crate) fn hold_settings() -> MutexGuard<'static, ()> {
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `check` with every instruction set that this processor has.
pub(crate) fn with_each_isa(mut check: impl FnMut(Isa)) {
    let _held = hold_settings();
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        if isa::set(isa) == isa {
            check(isa);
        }
    }
    isa::set(isa::detected());
}

/// Numbers in −1..1 that look random, the same for the same seed.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

#[test]
fn the_number_of_threads_is_the_one_that_was_set() {
    let _held = hold_settings();
    for wanted in [1, 3, 2] {
        set_threads(wanted);
        assert_eq!(threads::threads(), wanted);
    }
    set_threads(0);
    assert!(threads::threads() >= 1);
}

#[test]
fn a_wrong_number_of_threads_is_named_with_its_variable() {
    assert_eq!(threads::parse_threads(" 3 "), Ok(Some(3)));
    assert_eq!(threads::parse_threads(""), Ok(None));
    for value in ["0", "-1", "two"] {
        let expected = format!("MLX_RS_CPU_THREADS is `{value}`, wanted a whole number above 0");
        assert_eq!(threads::parse_threads(value), Err(expected));
    }
}

#[test]
fn an_unknown_instruction_set_is_named_with_the_known_ones() {
    assert_eq!(isa::parse_isa("avx2"), Ok(Some(Isa::Avx2)));
    assert_eq!(isa::parse_isa(""), Ok(None));
    let expected = "MLX_RS_CPU_ISA is `sse9`, wanted `avx512`, `avx2` or `portable`";
    assert_eq!(isa::parse_isa("sse9"), Err(expected.to_string()));
}

#[test]
fn an_instruction_set_that_the_processor_lacks_is_never_put_in_force() {
    let _held = hold_settings();
    assert_eq!(isa::set(Isa::Avx512), isa::detected());
    assert_eq!(isa::set(Isa::Portable), Isa::Portable);
    assert_eq!(isa::current(), Isa::Portable);
    isa::set(isa::detected());
}

#[test]
fn the_environment_of_the_tests_is_valid() {
    assert_eq!(check_environment(), Ok(()));
}

#[test]
fn every_item_of_a_parallel_loop_is_done_once() {
    let _held = hold_settings();
    for count in [1, 2, 4] {
        set_threads(count);
        for len in [0, 1, 7, 64, 1001] {
            let done: Vec<std::sync::atomic::AtomicU32> = (0..len).map(|_| 0.into()).collect();
            threads::for_each_span(len, 3, |span| {
                for i in span {
                    done[i].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
            assert!(done.iter().all(|times| times.load(std::sync::atomic::Ordering::Relaxed) == 1));
        }
    }
    set_threads(0);
}
