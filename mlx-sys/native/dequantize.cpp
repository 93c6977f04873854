// Affine dequantisation.

#include "primitive.h"

namespace mlxrs {

// The number by which the kernel knows a type of scales; -1 for a type that it does not take.
int scale_type(const mx::Dtype& dtype) {
  return dtype == mx::float32 ? 0 : dtype == mx::float16 ? 1 : dtype == mx::bfloat16 ? 2 : -1;
}

// Inputs: codes, scales, biases.
class Dequantize : public CpuPrimitive {
 public:
  Dequantize(const mx::Stream& s, int group, int bits) : CpuPrimitive(s), group_(group), bits_(bits) {}
  DEFINE_NAME(MlxrsDequantize)

  bool is_equivalent(const mx::Primitive& other) const override {
    const auto& that = static_cast<const Dequantize&>(other);
    return group_ == that.group_ && bits_ == that.bits_;
  }

  std::vector<mx::Shape> output_shapes(const Arrays& in) override {
    auto shape = in[1].shape();
    shape.back() *= group_;
    return {shape};
  }

  void eval_cpu(const Arrays& in, array& out) override {
    const uint32_t* codes = in[0].data<uint32_t>();
    const void* scales = in[1].data<char>();
    const void* biases = in[2].data<char>();
    float* weights = allocate(out);
    if (out.size() == 0) {
      return;
    }
    const size_t cols = columns(out), rows = out.size() / cols, group = static_cast<size_t>(group_);
    const uint32_t bits = static_cast<uint32_t>(bits_);
    const int type = scale_type(in[1].dtype());
    queue(stream(), [=] {
      if (mlxk_dequantize_f32(rows, cols, bits, group, codes, type, scales, biases, weights) != 0) {
        throw std::runtime_error("[dequantize] the kernel refused arguments that were checked");
      }
    });
  }

  Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums, const Arrays&) override {
    for (int at : argnums) {
      require(at != 0, "dequantize", "packed codes have no gradient");
    }
    auto composition = [s = stream(), group = group_, bits = bits_](const Arrays& x) -> Arrays {
      auto scales = mx::astype(x[1], mx::float32, s), biases = mx::astype(x[2], mx::float32, s);
      return {mx::dequantize(x[0], scales, biases, group, bits, "affine", std::nullopt, std::nullopt, s)};
    };
    return composed_vjp(composition, primals, cotangents, argnums);
  }

 private:
  int group_;
  int bits_;
};

array dequantize(
    const array& w,
    const array& scales,
    const array& biases,
    int group,
    int bits,
    const mx::Stream& s) {
  const char* op = "dequantize";
  require_cpu(op, s);
  require(
      bits == 2 || bits == 3 || bits == 4 || bits == 5 || bits == 6 || bits == 8,
      op,
      "bits is " + shown(bits) + ", wanted 2, 3, 4, 5, 6 or 8");
  require(group == 32 || group == 64 || group == 128, op, "group is " + shown(group) + ", wanted 32, 64 or 128");
  require(w.dtype() == mx::uint32, op, "w is of " + shown(w.dtype()) + ", wanted uint32");
  require(
      scale_type(scales.dtype()) >= 0 && scales.dtype() == biases.dtype(),
      op,
      "scales are of " + shown(scales.dtype()) + " and biases of " + shown(biases.dtype()) +
          ", wanted the same of float32, float16 and bfloat16");
  require_last_axis(op, w);
  require_last_axis(op, scales);
  auto wanted = scales.shape();
  // A group fills whole words, as it is a multiple of 32 codes.
  wanted.back() *= group / 32 * bits;
  require(
      scales.shape() == biases.shape() && w.shape() == wanted,
      op,
      "w has shape " + shown(w.shape()) + ", scales " + shown(scales.shape()) + " and biases " + shown(biases.shape()) +
          ", wanted w of shape " + shown(wanted) + " and equal scales and biases");
  auto shape = scales.shape();
  shape.back() *= group;
  Arrays inputs = {dense(w, s), dense(scales, s), dense(biases, s)};
  return array(std::move(shape), mx::float32, std::make_shared<Dequantize>(s, group, bits), std::move(inputs));
}

} // namespace mlxrs

extern "C" int mlxrs_dequantize(
    mlx_array* res,
    mlx_array w,
    mlx_array scales,
    mlx_array biases,
    int group,
    int bits,
    mlx_stream s) {
  return mlxrs::answer(res, [&] {
    return mlxrs::dequantize(
        mlx_array_get_(w), mlx_array_get_(scales), mlx_array_get_(biases), group, bits, mlx_stream_get_(s));
  });
}
