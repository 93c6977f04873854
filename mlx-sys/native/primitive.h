// What every primitive here is made of.
//
// How a primitive lives: a builder checks the arguments and makes the node; eval_cpu allocates the output and queues the
// kernel on the stream's thread with raw pointers, which MLX keeps alive until the queue is past them; vjp and jvp build
// further nodes. The derivative of a gradient goes by composition of MLX's ops: it works, slowly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels.h"
#include "mlx/allocator.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/c/error.h"
#include "mlx/c/private/mlx.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "primitives.h"

namespace mlxrs {

namespace mx = mlx::core;
using mx::array;
using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;

inline void require(bool fits, const char* op, const std::string& problem) {
  if (!fits) {
    throw std::invalid_argument("[" + std::string(op) + "] " + problem);
  }
}

template <typename Shown>
std::string shown(const Shown& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

inline void require_floats(const char* op, const char* what, const array& x) {
  require(x.dtype() == mx::float32, op, std::string(what) + " is of " + shown(x.dtype()) + ", wanted float32");
}

inline void require_last_axis(const char* op, const array& x) {
  require(x.ndim() > 0, op, "found a scalar, wanted at least one axis");
}

inline void require_cpu(const char* op, const mx::Stream& s) {
  require(s.device == mx::Device::cpu, op, "found a stream of " + shown(s.device) + ", wanted one of the CPU");
}

// `x` with its elements in row-major order; free where they already are.
inline array dense(const array& x, const mx::Stream& s) {
  return mx::contiguous(x, false, s);
}

inline size_t columns(const array& x) {
  return static_cast<size_t>(x.shape(-1));
}

inline float* allocate(array& out) {
  out.set_data(mx::allocator::malloc(out.nbytes()));
  return out.data<float>();
}

// The output's memory: the input's own where nobody else needs it, as the kernel may write what it has read.
inline float* reuse(const array& in, array& out) {
  if (in.flags().row_contiguous && in.size() == out.size() && in.is_donatable()) {
    out.copy_shared_buffer(in);
    return out.data<float>();
  }
  return allocate(out);
}

template <typename Kernel>
void queue(const mx::Stream& s, Kernel&& kernel) {
  mx::cpu::get_command_encoder(s).dispatch(std::forward<Kernel>(kernel));
}

// The gradients of `function` with respect to the arguments `argnums`, by MLX's own rules.
inline Arrays composed_vjp(
    const Function& function,
    const Arrays& primals,
    const Arrays& cotangents,
    const std::vector<int>& argnums) {
  Arrays chosen;
  for (int at : argnums) {
    chosen.push_back(primals[at]);
  }
  auto restricted = [&](const Arrays& values) {
    Arrays all = primals;
    for (size_t i = 0; i < argnums.size(); i++) {
      all[argnums[i]] = values[i];
    }
    return function(all);
  };
  return mx::vjp(restricted, chosen, cotangents).second;
}

// A primitive of the CPU with one output.
class CpuPrimitive : public mx::UnaryPrimitive {
 public:
  using mx::UnaryPrimitive::UnaryPrimitive;

  void eval_gpu(const Arrays&, array&) override {
    throw std::runtime_error(std::string("[") + name() + "] runs on the CPU only");
  }
};

// The one output has the shape of the first input.
#define MLXRS_SHAPE_OF_INPUT()                                         \
  std::vector<mx::Shape> output_shapes(const Arrays& inputs) override { \
    return {inputs[0].shape()};                                         \
  }

// Nothing is thrown into C: what `build` throws becomes a message and a status.
template <typename Build>
int answer(mlx_array* res, Build&& build) {
  try {
    mlx_array_set_(*res, build());
    return 0;
  } catch (const std::exception& error) {
    mlx_error("%s", error.what());
    return 1;
  }
}

} // namespace mlxrs
