// SwiGLU.

#include "primitive.h"

namespace mlxrs {

// Inputs: gate, up and the cotangent; outputs: those of gate and up.
class SwiGluGradient : public mx::Primitive {
 public:
  using mx::Primitive::Primitive;
  DEFINE_NAME(MlxrsSwiGluGradient)
  DEFINE_DEFAULT_IS_EQUIVALENT()

  std::vector<mx::Shape> output_shapes(const Arrays& in) override {
    return {in[0].shape(), in[1].shape()};
  }

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const float* gate = in[0].data<float>();
    const float* up = in[1].data<float>();
    const float* dy = in[2].data<float>();
    float* d_gate = allocate(out[0]);
    float* d_up = reuse(in[2], out[1]);
    const size_t count = in[0].size();
    if (count > 0) {
      queue(stream(), [=] { mlxk_swiglu_backward_f32(count, gate, up, dy, d_gate, d_up); });
    }
  }

  void eval_gpu(const Arrays&, Arrays&) override {
    throw std::runtime_error("[MlxrsSwiGluGradient] runs on the CPU only");
  }

  Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums, const Arrays&) override {
    auto composition = [s = stream()](const Arrays& x) -> Arrays {
      auto sigmoid = mx::sigmoid(x[0], s);
      auto silu = mx::multiply(x[0], sigmoid, s);
      // silu' = sigmoid + silu * (1 - sigmoid).
      auto rest = mx::subtract(array(1.0f), sigmoid, s);
      auto slope = mx::add(sigmoid, mx::multiply(silu, rest, s), s);
      return {mx::multiply(mx::multiply(x[2], x[1], s), slope, s), mx::multiply(x[2], silu, s)};
    };
    return composed_vjp(composition, primals, cotangents, argnums);
  }
};

Arrays swiglu_gradient(const array& gate, const array& up, const array& dy, const mx::Stream& s) {
  return array::make_arrays(
      {gate.shape(), up.shape()},
      {mx::float32, mx::float32},
      std::make_shared<SwiGluGradient>(s),
      {gate, up, dense(dy, s)});
}

class SwiGlu : public CpuPrimitive {
 public:
  using CpuPrimitive::CpuPrimitive;
  DEFINE_NAME(MlxrsSwiGlu)
  DEFINE_DEFAULT_IS_EQUIVALENT()
  MLXRS_SHAPE_OF_INPUT()

  void eval_cpu(const Arrays& in, array& out) override {
    const float* gate = in[0].data<float>();
    const float* up = in[1].data<float>();
    float* y = reuse(in[0], out);
    const size_t count = out.size();
    if (count > 0) {
      queue(stream(), [=] { mlxk_swiglu_f32(count, gate, up, y); });
    }
  }

  Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums, const Arrays&) override {
    auto gradients = swiglu_gradient(primals[0], primals[1], cotangents[0], stream());
    Arrays chosen;
    for (int at : argnums) {
      chosen.push_back(gradients[at]);
    }
    return chosen;
  }

  Arrays jvp(const Arrays& primals, const Arrays& tangents, const std::vector<int>& argnums) override {
    Arrays parts;
    for (size_t i = 0; i < argnums.size(); i++) {
      // Each output of the gradient is diagonal in the cotangent, so a tangent may stand in for it.
      parts.push_back(swiglu_gradient(primals[0], primals[1], tangents[i], stream())[argnums[i]]);
    }
    return {parts.size() == 1 ? parts[0] : mx::add(parts[0], parts[1], stream())};
  }
};

array swiglu(const array& gate, const array& up, const mx::Stream& s) {
  require_cpu("swiglu", s);
  require_floats("swiglu", "gate", gate);
  require_floats("swiglu", "up", up);
  require(
      gate.shape() == up.shape(),
      "swiglu",
      "gate has shape " + shown(gate.shape()) + " and up " + shown(up.shape()) + ", wanted the same");
  return array(gate.shape(), mx::float32, std::make_shared<SwiGlu>(s), {dense(gate, s), dense(up, s)});
}

} // namespace mlxrs

extern "C" int mlxrs_swiglu(mlx_array* res, mlx_array gate, mlx_array up, mlx_stream s) {
  return mlxrs::answer(
      res, [&] { return mlxrs::swiglu(mlx_array_get_(gate), mlx_array_get_(up), mlx_stream_get_(s)); });
}
