//! The private thread pool. Private, so that its size is ours alone to set and the host program's own rayon pool is
//! never held up by a matrix product.

use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// The environment variable that sets the number of threads.
pub const THREADS_VARIABLE: &str = "MLX_RS_CPU_THREADS";

/// Tasks per thread in a parallel loop: more than one, so that a thread that the system delays leaves work to the others.
const TASKS_PER_THREAD: usize = 4;

static POOL: RwLock<Option<Arc<Pool>>> = RwLock::new(None);

/// A number of threads and, above one, the workers.
pub(crate) struct Pool {
    threads: usize,
    workers: Option<rayon::ThreadPool>,
}

impl Pool {
    fn new(threads: usize) -> Self {
        if threads > 1 {
            let built = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|index| format!("mlx-cpu-{index}"))
                .build();
            if let Ok(workers) = built {
                return Self { threads, workers: Some(workers) };
            }
        }
        // A system that refuses more threads still gets its result, on the calling thread.
        Self { threads: 1, workers: None }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `task` where rayon's parallel iterators use this pool; on the calling thread when the pool has one thread.
    pub(crate) fn install<R: Send>(&self, task: impl FnOnce() -> R + Send) -> R {
        match &self.workers {
            Some(workers) => workers.install(task),
            None => task(),
        }
    }
}

/// Sets the number of threads that the kernels use; 0 goes back to the default (`MLX_RS_CPU_THREADS`, else the number of
/// processors available). Calls in progress finish on the pool that they began with.
pub fn set_threads(threads: usize) {
    let threads = if threads == 0 { default_threads() } else { threads };
    let pool = Arc::new(Pool::new(threads));
    *POOL.write().unwrap_or_else(PoisonError::into_inner) = Some(pool);
}

/// The number of threads that the kernels use.
pub fn threads() -> usize {
    pool().threads()
}

/// The value of `MLX_RS_CPU_THREADS`, `None` when unset or empty.
///
/// # Errors
/// The value is not a whole number above zero.
pub fn from_environment() -> Result<Option<usize>, String> {
    let Some(value) = std::env::var_os(THREADS_VARIABLE) else {
        return Ok(None);
    };
    parse_threads(&value.to_string_lossy())
}

pub(crate) fn parse_threads(value: &str) -> Result<Option<usize>, String> {
    match value.trim() {
        "" => Ok(None),
        text => match text.parse::<usize>() {
            Ok(threads) if threads > 0 => Ok(Some(threads)),
            _ => Err(format!("{THREADS_VARIABLE} is `{value}`, wanted a whole number above 0")),
        },
    }
}

pub(crate) fn pool() -> Arc<Pool> {
    if let Some(pool) = POOL.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
        return Arc::clone(pool);
    }
    let mut slot = POOL.write().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(slot.get_or_insert_with(|| Arc::new(Pool::new(default_threads()))))
}

fn default_threads() -> usize {
    from_environment().ok().flatten().unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Calls `task` on ranges that together cover `0..count` once, in parallel when there is more than `grain` to do.
/// The ranges depend on the number of threads, so a task must compute each item independently of its neighbours.
pub(crate) fn for_each_span(count: usize, grain: usize, task: impl Fn(Range<usize>) + Send + Sync) {
    if count == 0 {
        return;
    }
    let pool = pool();
    let pieces = count.div_ceil(grain.max(1)).min(pool.threads() * TASKS_PER_THREAD);
    if pool.threads() == 1 || pieces <= 1 {
        return task(0..count);
    }
    let length = count.div_ceil(pieces);
    pool.install(|| {
        (0..count.div_ceil(length)).into_par_iter().with_max_len(1).for_each(|piece| {
            let start = piece * length;
            task(start..(start + length).min(count));
        });
    });
}

/// A pointer that tasks on several threads share. Whoever builds one promises that the tasks touch disjoint elements,
/// or only read.
pub(crate) struct Shared<T>(*mut T);

impl<T> Shared<T> {
    pub(crate) fn input(pointer: *const T) -> Self {
        Self(pointer.cast_mut())
    }

    pub(crate) fn output(pointer: *mut T) -> Self {
        Self(pointer)
    }

    pub(crate) fn get(self) -> *mut T {
        self.0
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: the pointer is only an address; the promise in the type's documentation makes its uses free of data races.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as for `Send`.
unsafe impl<T> Sync for Shared<T> {}
