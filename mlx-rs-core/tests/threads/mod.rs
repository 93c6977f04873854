//! Several threads with their own arrays and streams compute, differentiate, fail and panic at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;

use mlx_rs_core::transforms::{self, Compiled, CustomVjp};
use mlx_rs_core::{Array, Device, Result, Stream, device, ops, random};

const THREADS: usize = 6;
const ROUNDS: usize = 60;

/// Starts `body` on all threads at the same moment and waits for them.
fn at_once(body: impl Fn(usize) -> Result<()> + Send + Sync + 'static) {
    let (body, barrier) = (Arc::new(body), Arc::new(Barrier::new(THREADS)));
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let (body, barrier) = (Arc::clone(&body), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                body(index)
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic leaves its thread's own catch").expect("no error");
    }
}

#[test]
fn threads_compute_and_differentiate_at_once_on_their_own_streams() {
    at_once(|index| {
        let stream = Stream::new(Device::Cpu)?;
        device::with_stream(&stream, || {
            assert_eq!(Stream::current()?, stream);
            let n = index as f32 + 1.0;
            for _ in 0..ROUNDS {
                let x = Array::from_slice(&[n, 2.0 * n, 3.0 * n], &[3])?;
                let f = |x: &[Array]| Ok(vec![ops::sum(&ops::square(&x[0])?, None, false)?]);
                let (value, grad) = transforms::value_and_grad(f, &[0], &[x])?;
                assert_eq!(value[0].item::<f32>()?, 14.0 * n * n);
                assert_eq!(grad[0].to_vec::<f32>()?, [2.0 * n, 4.0 * n, 6.0 * n]);
            }
            stream.synchronize()
        })
    });
}

#[test]
fn threads_use_retained_closures_and_compiled_functions_at_once() {
    at_once(|index| {
        let factor = f64::from(index as u32 + 2);
        let rule = CustomVjp::new(
            |x| Ok(vec![ops::square(&x[0])?]),
            move |_, cotangents, _| Ok(vec![(&cotangents[0] * factor)?]),
        )?;
        let compiled = Compiled::new(move |x: &[Array]| Ok(vec![(&ops::exp(&x[0])? * factor)?]), false)?;
        for _ in 0..ROUNDS {
            let grad = transforms::grad(|x| rule.call(x), &[0], &[Array::scalar(5.0f32)?])?;
            assert_eq!(grad[0].item::<f32>()?, factor as f32);
            let out = compiled.call(&[Array::scalar(0.0f32)?])?;
            assert_eq!(out[0].item::<f32>()?, factor as f32);
        }
        assert_eq!(compiled.trace_count(), 1);
        Ok(())
    });
}

#[test]
fn the_messages_of_one_thread_never_reach_another() {
    at_once(|index| {
        // A shape that only this thread asks for, so that its message is its own.
        let odd = 1000 + index as i32;
        for _ in 0..ROUNDS {
            let error = Array::from_slice(&[1.0f32; 4], &[4])?.reshape(&[odd]).unwrap_err();
            assert!(error.message.contains(&odd.to_string()), "thread {index}: {error}");
            let inside = |x: &[Array]| Ok(vec![x[0].reshape(&[odd])?]);
            let error = transforms::grad(inside, &[0], &[Array::scalar(1.0f32)?]).unwrap_err();
            assert!(error.message.contains(&odd.to_string()), "thread {index}: {error}");
        }
        Ok(())
    });
}

#[test]
fn threads_that_panic_fail_and_succeed_at_once_do_not_disturb_each_other() {
    at_once(|index| {
        for round in 0..ROUNDS {
            let x = [Array::scalar(3.0f32)?];
            match (index + round) % 3 {
                0 => {
                    let panics = |_: &[Array]| -> Result<Vec<Array>> { std::panic::panic_any((index, round)) };
                    let caught = catch_unwind(AssertUnwindSafe(|| transforms::grad(panics, &[0], &x)));
                    let payload = caught.expect_err("a panic").downcast::<(usize, usize)>().expect("our payload");
                    assert_eq!(*payload, (index, round));
                }
                1 => {
                    let fails = |x: &[Array]| Ok(vec![x[0].reshape(&[index as i32 + 50])?]);
                    assert_eq!(transforms::grad(fails, &[0], &x).unwrap_err().op, "reshape");
                }
                _ => {
                    let grad = transforms::grad(|x| Ok(vec![ops::square(&x[0])?]), &[0], &x)?;
                    assert_eq!(grad[0].item::<f32>()?, 6.0);
                }
            }
        }
        Ok(())
    });
}

#[test]
fn random_numbers_work_on_a_second_thread_with_and_without_a_key() {
    at_once(|_| {
        let keyed = random::normal(&[3], mlx_rs_core::Dtype::Float32, 0.0, 1.0, Some(&random::key(7)?))?;
        let again = random::normal(&[3], mlx_rs_core::Dtype::Float32, 0.0, 1.0, Some(&random::key(7)?))?;
        assert_eq!(keyed.to_vec::<f32>()?, again.to_vec::<f32>()?);
        let free = random::uniform(0.0, 1.0, &[100], mlx_rs_core::Dtype::Float32, None)?.to_vec::<f32>()?;
        assert!(free.iter().all(|value| (0.0..1.0).contains(value)));
        Ok(())
    });
}

#[test]
fn a_scope_belongs_to_its_thread() -> Result<()> {
    let stream = Stream::new(Device::Cpu)?;
    device::with_stream(&stream, || {
        let name = format!("{stream:?}");
        let other = thread::spawn(|| format!("{:?}", Stream::current().unwrap())).join().unwrap();
        assert_ne!(name, other);
        assert_eq!(Stream::current()?, stream);
        Ok(())
    })
}
