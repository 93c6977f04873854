//! Which of our functions stands for which C function, by topic.

mod elementwise;
mod library;
mod linear;
mod reduce;
mod shape;

use std::collections::BTreeMap;

use mlx_rs_core::{Array, Result};

use super::args::Args;

/// Calls one of our functions with the arguments of the C function.
pub type Op = fn(&Args) -> Result<Vec<Array>>;

/// The name of a C function without `mlx_`, and our call for it.
pub type Entry = (&'static str, Op);

/// What a function gives, as a list.
pub trait Outputs {
    fn list(self) -> Vec<Array>;
}

impl Outputs for Array {
    fn list(self) -> Vec<Array> {
        vec![self]
    }
}

impl Outputs for (Array, Array) {
    fn list(self) -> Vec<Array> {
        vec![self.0, self.1]
    }
}

impl Outputs for Vec<Array> {
    fn list(self) -> Vec<Array> {
        self
    }
}

pub fn outputs<T: Outputs>(result: Result<T>) -> Result<Vec<Array>> {
    result.map(Outputs::list)
}

/// An argument of a row: its place in the C function's list, or a constant.
macro_rules! argument {
    ($args:ident, $index:literal) => {
        $args.get($index)
    };
    ($args:ident, $constant:ident) => {
        $constant
    };
    ($args:ident, ($constant:expr)) => {
        $constant
    };
}
pub(crate) use argument;

/// `"c_function" => our::function(places of its arguments);`
macro_rules! entries {
    ($($name:literal => $($part:ident)::+ ($($arg:tt)*);)*) => {
        &[$((
            $name,
            |args: &$crate::ops_parity::args::Args| {
                $crate::ops_parity::dispatch::outputs(
                    $($part)::+($($crate::ops_parity::dispatch::argument!(args, $arg)),*),
                )
            },
        )),*]
    };
}
pub(crate) use entries;

/// Functions of one module with the C function's own name (after a prefix) and one list of arguments.
macro_rules! same_name {
    ($prefix:literal $module:ident $list:tt: $($name:ident)*) => {
        &[$($crate::ops_parity::dispatch::same_name!(@ $prefix $module $name $list)),*]
    };
    (@ $prefix:literal $module:ident $name:ident ($($arg:tt)*)) => {
        (
            concat!($prefix, stringify!($name)),
            |args: &$crate::ops_parity::args::Args| {
                $crate::ops_parity::dispatch::outputs(
                    $module::$name($($crate::ops_parity::dispatch::argument!(args, $arg)),*),
                )
            },
        )
    };
}
pub(crate) use same_name;

/// All of them by name.
pub fn all() -> BTreeMap<&'static str, Op> {
    let topics = [elementwise::ENTRIES, reduce::ENTRIES, shape::ENTRIES, linear::ENTRIES, library::ENTRIES];
    let mut all = BTreeMap::new();
    for &(name, op) in topics.into_iter().flatten().copied().flatten() {
        assert!(all.insert(name, op).is_none(), "two dispatchers for {name}");
    }
    all
}
