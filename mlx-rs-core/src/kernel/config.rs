//! mlx-c's settings of one kernel run. Metal and CUDA have a family of functions each, with the same signatures.

/// Defines `Config`, the owner of the settings type `$raw`, over the functions of its family.
macro_rules! launch_config {
    (
        $raw:ident, $new:ident, $free:ident, $add_output:ident, $set_grid:ident, $set_thread_group:ident,
        $set_init_value:ident, $set_verbose:ident, $add_int:ident, $add_bool:ident, $add_dtype:ident $(,)?
    ) => {
        /// Owner of mlx-c's settings of one run.
        pub(super) struct Config(sys::$raw);

        impl Config {
            pub(super) fn new(launch: &Launch<'_>) -> Result<Self> {
                error::install_handler();
                error::clear_message();
                // SAFETY: creates empty settings.
                let config = Self(unsafe { sys::$new() });
                if config.0.ctx.is_null() {
                    return Err(error::take_message(OP));
                }
                for (shape, dtype) in &launch.outputs {
                    // SAFETY: C copies the shape.
                    ffi::check(OP, || unsafe { sys::$add_output(config.0, shape.as_ptr(), shape.len(), dtype.raw()) })?;
                }
                let ([x, y, z], [tx, ty, tz]) = (launch.grid, launch.thread_group);
                // SAFETY: the settings are live; plain numbers.
                ffi::check(OP, || unsafe { sys::$set_grid(config.0, x, y, z) })?;
                // SAFETY: the settings are live; plain numbers.
                ffi::check(OP, || unsafe { sys::$set_thread_group(config.0, tx, ty, tz) })?;
                if let Some(value) = launch.init_value {
                    // SAFETY: the settings are live; a plain number.
                    ffi::check(OP, || unsafe { sys::$set_init_value(config.0, value) })?;
                }
                // SAFETY: the settings are live; a plain bool.
                ffi::check(OP, || unsafe { sys::$set_verbose(config.0, launch.verbose) })?;
                launch.template.iter().try_for_each(|(name, value)| config.add_template(name, *value))?;
                Ok(config)
            }

            fn add_template(&self, name: &str, value: TemplateArg) -> Result<()> {
                let name = ffi::c_string(OP, name)?;
                let name = name.as_ptr();
                // SAFETY: the settings are live, and C copies the name.
                ffi::check(OP, || unsafe {
                    match value {
                        TemplateArg::Int(value) => sys::$add_int(self.0, name, value),
                        TemplateArg::Bool(value) => sys::$add_bool(self.0, name, value),
                        TemplateArg::Dtype(value) => sys::$add_dtype(self.0, name, value.raw()),
                    }
                })
            }
        }

        impl Drop for Config {
            fn drop(&mut self) {
                // SAFETY: this value owns the settings; MLX copied what a run needs.
                unsafe { sys::$free(self.0) };
            }
        }
    };
}

pub(super) use launch_config;
