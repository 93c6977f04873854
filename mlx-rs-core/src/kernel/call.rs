//! What one run of a kernel is given, and how it is settled against the inputs.

use super::{KernelSource, require_identifier};
use crate::array::{Array, element_count};
use crate::element::Dtype;
use crate::error::{Error, Result};

type OutputShapes<'a> = dyn Fn(&[Array]) -> Result<Vec<(Vec<i32>, Dtype)>> + 'a;
type Grid<'a> = dyn Fn(&[Array]) -> Result<[i32; 3]> + 'a;

/// The settings of one run: outputs, grid, thread group, template arguments. A builder; see [`super`] for an example.
///
/// Outputs are a list ([`output`](Self::output)) or a function of the inputs ([`output_shapes`](Self::output_shapes));
/// with both, the function wins. The grid is fixed or a function of the inputs, likewise.
#[derive(Default)]
pub struct KernelCall<'a> {
    outputs: Vec<(Vec<i32>, Dtype)>,
    output_shapes: Option<Box<OutputShapes<'a>>>,
    grid: Option<[i32; 3]>,
    grid_of: Option<Box<Grid<'a>>>,
    thread_group: Option<[i32; 3]>,
    template: Vec<(String, TemplateArg)>,
    init_value: Option<f32>,
    verbose: bool,
}

/// A template argument: a constant or a type that the body names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplateArg {
    Int(i32),
    Bool(bool),
    Dtype(Dtype),
}

/// A call whose functions have been run and whose numbers have been checked.
#[derive(Debug, PartialEq)]
pub(super) struct Launch<'a> {
    pub outputs: Vec<(Vec<i32>, Dtype)>,
    pub grid: [i32; 3],
    pub thread_group: [i32; 3],
    pub template: &'a [(String, TemplateArg)],
    pub init_value: Option<f32>,
    pub verbose: bool,
}

impl<'a> KernelCall<'a> {
    /// Nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the shape and dtype of the next output, in the order of the kernel's output names.
    pub fn output(mut self, shape: &[i32], dtype: Dtype) -> Self {
        self.outputs.push((shape.to_vec(), dtype));
        self
    }

    /// Gives the shapes and dtypes of all outputs as a function of the inputs.
    pub fn output_shapes(mut self, shapes: impl Fn(&[Array]) -> Result<Vec<(Vec<i32>, Dtype)>> + 'a) -> Self {
        self.output_shapes = Some(Box::new(shapes));
        self
    }

    /// How many threads run along x, y and z.
    pub fn grid(mut self, grid: [i32; 3]) -> Self {
        self.grid = Some(grid);
        self
    }

    /// Gives the grid as a function of the inputs.
    pub fn grid_of(mut self, grid: impl Fn(&[Array]) -> Result<[i32; 3]> + 'a) -> Self {
        self.grid_of = Some(Box::new(grid));
        self
    }

    /// How many threads make a group (CUDA: a block) along x, y and z.
    pub fn thread_group(mut self, threads: [i32; 3]) -> Self {
        self.thread_group = Some(threads);
        self
    }

    /// A whole-number constant of the body.
    pub fn template_int(self, name: &str, value: i32) -> Self {
        self.template(name, TemplateArg::Int(value))
    }

    /// A bool constant of the body.
    pub fn template_bool(self, name: &str, value: bool) -> Self {
        self.template(name, TemplateArg::Bool(value))
    }

    /// A type of the body.
    pub fn template_dtype(self, name: &str, dtype: Dtype) -> Self {
        self.template(name, TemplateArg::Dtype(dtype))
    }

    fn template(mut self, name: &str, value: TemplateArg) -> Self {
        self.template.push((name.to_owned(), value));
        self
    }

    /// Fills every output with this value before the kernel runs; without it, outputs start as unset memory.
    pub fn init_value(mut self, value: f32) -> Self {
        self.init_value = Some(value);
        self
    }

    /// Prints the generated source when the kernel is built.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Runs the functions on `inputs` and checks everything that can be checked without a GPU.
    pub(super) fn settle(&self, op: &'static str, kernel: &KernelSource, inputs: &[Array]) -> Result<Launch<'_>> {
        let name = &kernel.name;
        same_count(op, name, "inputs", &kernel.inputs, inputs.len())?;
        let outputs = match &self.output_shapes {
            Some(shapes) => shapes(inputs)?,
            None if self.outputs.is_empty() => {
                return Err(Error::argument(op, format!("{name}: provide outputs or an output-shape function")));
            }
            None => self.outputs.clone(),
        };
        same_count(op, name, "outputs", &kernel.outputs, outputs.len())?;
        outputs.iter().try_for_each(|(shape, _)| element_count(op, shape).map(|_| ()))?;
        let grid = match (&self.grid_of, self.grid) {
            (Some(grid), _) => grid(inputs)?,
            (None, Some(grid)) => grid,
            (None, None) => return Err(Error::argument(op, format!("{name}: provide a grid or a grid function"))),
        };
        let thread_group =
            self.thread_group.ok_or_else(|| Error::argument(op, format!("{name}: provide a thread group")))?;
        for (what, size) in [("grid", grid), ("thread group", thread_group)] {
            if size.iter().any(|&threads| threads < 1) {
                return Err(Error::argument(op, format!("{name}: {what} is {size:?}, wanted at least 1 everywhere")));
            }
        }
        for (index, (argument, _)) in self.template.iter().enumerate() {
            require_identifier(op, "template argument", argument)?;
            if self.template[..index].iter().any(|(earlier, _)| earlier == argument) {
                return Err(Error::argument(op, format!("{name}: two template arguments are named {argument:?}")));
            }
        }
        let Self { template, init_value, verbose, .. } = self;
        Ok(Launch { outputs, grid, thread_group, template, init_value: *init_value, verbose: *verbose })
    }
}

fn same_count(op: &'static str, kernel: &str, what: &str, names: &[String], found: usize) -> Result<()> {
    if names.len() == found {
        return Ok(());
    }
    let (wanted, names) = (names.len(), names.join(", "));
    Err(Error::argument(op, format!("{kernel}: found {found} {what}, wanted {wanted} ({names})")))
}
