//! Values of the transforms.

mod compiled;
mod custom;
mod gradients;
