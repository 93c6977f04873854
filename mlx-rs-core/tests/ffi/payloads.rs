//! What closures capture is freed exactly once, when nobody can call them any more, and on its own thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};

use mlx_rs_core::transforms::{self, Checkpoint, Compiled, CustomVjp};
use mlx_rs_core::{Array, Result, ops};

/// Counts how often it is dropped, and remembers where.
struct Payload {
    drops: Arc<AtomicUsize>,
    place: Arc<Mutex<Option<ThreadId>>>,
}

/// The outside of a [`Payload`].
#[derive(Default, Clone)]
struct Count {
    drops: Arc<AtomicUsize>,
    place: Arc<Mutex<Option<ThreadId>>>,
}

impl Count {
    fn payload(&self) -> Payload {
        Payload { drops: Arc::clone(&self.drops), place: Arc::clone(&self.place) }
    }

    fn drops(&self) -> usize {
        self.drops.load(Ordering::SeqCst)
    }

    fn place(&self) -> Option<ThreadId> {
        *self.place.lock().unwrap()
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
        *self.place.lock().unwrap() = Some(thread::current().id());
    }
}

/// What MLX may do with the last reference to a graph: drop it on a thread of its own.
struct Elsewhere<T>(T);

// SAFETY: the tests only drop the value on the other thread, as MLX's own worker threads do with graphs.
unsafe impl<T> Send for Elsewhere<T> {}

impl<T> Elsewhere<T> {
    fn drop_here(self) {
        drop(self.0);
    }
}

fn one() -> Result<Array> {
    Array::scalar(1.0f32)
}

fn square_with(forward: Payload, backward: Payload) -> Result<CustomVjp> {
    CustomVjp::new(
        move |x| {
            let _kept = &forward;
            Ok(vec![ops::square(&x[0])?])
        },
        move |_, cotangents, _| {
            let _kept = &backward;
            Ok(vec![cotangents[0].clone()])
        },
    )
}

#[test]
fn payloads_of_an_unused_closure_are_freed_once_with_its_handle() -> Result<()> {
    let (forward, backward, inside, compiled) =
        (Count::default(), Count::default(), Count::default(), Count::default());
    let custom = square_with(forward.payload(), backward.payload())?;
    let payload = inside.payload();
    let checkpoint = Checkpoint::new(move |x| {
        let _kept = &payload;
        Ok(x.to_vec())
    })?;
    let payload = compiled.payload();
    let compile = Compiled::new(
        move |x: &[Array]| {
            let _kept = &payload;
            Ok(x.to_vec())
        },
        false,
    )?;
    let drops = || [forward.drops(), backward.drops(), inside.drops(), compiled.drops()];
    assert_eq!(drops(), [0, 0, 0, 0]);
    drop((custom, checkpoint, compile));
    assert_eq!(drops(), [1, 1, 1, 1]);
    Ok(())
}

#[test]
fn payloads_live_as_long_as_a_graph_that_may_run_them() -> Result<()> {
    let (forward, backward) = (Count::default(), Count::default());
    let custom = square_with(forward.payload(), backward.payload())?;
    let graph = custom.call(&[one()?])?;
    drop(custom);
    assert_eq!((forward.drops(), backward.drops()), (0, 0));
    drop(graph);
    assert_eq!((forward.drops(), backward.drops()), (1, 1));
    Ok(())
}

#[test]
fn evaluation_cuts_the_graph_and_frees_its_payloads() -> Result<()> {
    let (forward, backward) = (Count::default(), Count::default());
    let custom = square_with(forward.payload(), backward.payload())?;
    let value = custom.call(&[one()?])?;
    drop(custom);
    transforms::eval(&value)?;
    assert_eq!((forward.drops(), backward.drops()), (1, 1));
    assert_eq!(value[0].item::<f32>()?, 1.0);
    Ok(())
}

#[test]
fn a_closure_that_is_dropped_before_its_gradient_is_evaluated_still_gives_it() -> Result<()> {
    let (forward, backward) = (Count::default(), Count::default());
    let custom = square_with(forward.payload(), backward.payload())?;
    let gradient = transforms::grad(|x| custom.call(x), &[0], &[one()?])?;
    drop(custom);
    assert_eq!(gradient[0].item::<f32>()?, 1.0);
    assert_eq!((forward.drops(), backward.drops()), (1, 1));
    Ok(())
}

#[test]
fn what_a_scoped_function_borrows_is_free_after_the_call_even_if_its_graph_lives() -> Result<()> {
    let mut captured = vec![one()?];
    let gradient = transforms::grad(|x| Ok(vec![(&x[0] * &captured[0])?]), &[0], &[one()?])?;
    captured.push(Array::scalar(2.0f32)?);
    assert_eq!((gradient[0].item::<f32>()?, captured.len()), (1.0, 2));
    Ok(())
}

#[test]
fn a_payload_dropped_on_another_thread_is_sent_home() -> Result<()> {
    let home = thread::current().id();
    let (forward, backward) = (Count::default(), Count::default());
    let graph = Elsewhere(square_with(forward.payload(), backward.payload())?.call(&[one()?])?);
    thread::spawn(move || graph.drop_here()).join().unwrap();
    assert_eq!(backward.drops(), 0, "the other thread must not drop what belongs here");
    // The next retained closure of this thread takes it in.
    let _next = Checkpoint::new(|x| Ok(x.to_vec()))?;
    assert_eq!((backward.drops(), backward.place()), (1, Some(home)));
    Ok(())
}

#[test]
fn a_payload_that_comes_home_late_is_dropped_when_its_thread_ends() {
    let backward = Count::default();
    let payload = backward.payload();
    let (to_main, from_owner) = mpsc::channel();
    let (to_owner, from_main) = mpsc::channel::<()>();
    let owner = thread::spawn(move || {
        let graph = square_with(Count::default().payload(), payload).unwrap().call(&[one().unwrap()]).unwrap();
        to_main.send(Elsewhere(graph)).unwrap();
        from_main.recv().unwrap();
        thread::current().id()
    });
    from_owner.recv().unwrap().drop_here();
    assert_eq!(backward.drops(), 0);
    to_owner.send(()).unwrap();
    let home = owner.join().unwrap();
    assert_eq!((backward.drops(), backward.place()), (1, Some(home)));
}

#[test]
fn a_payload_whose_thread_is_gone_is_leaked_not_dropped_elsewhere() {
    let backward = Count::default();
    let payload = backward.payload();
    let owner = thread::spawn(move || {
        Elsewhere(square_with(Count::default().payload(), payload).unwrap().call(&[one().unwrap()]).unwrap())
    });
    let graph = owner.join().unwrap();
    graph.drop_here();
    let _next = Checkpoint::new(|x| Ok(x.to_vec())).unwrap();
    assert_eq!(backward.drops(), 0);
}
