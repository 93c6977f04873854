// softmax, its causal form, and logsumexp, over the last axis.

#include "primitive.h"

namespace mlxrs {

// ---- softmax ----

array softmax_gradient(const array& y, const array& dy, const mx::Stream& s);

class SoftmaxGradient : public CpuPrimitive {
 public:
  using CpuPrimitive::CpuPrimitive;
  DEFINE_NAME(MlxrsSoftmaxGradient)
  DEFINE_DEFAULT_IS_EQUIVALENT()
  MLXRS_SHAPE_OF_INPUT()

  void eval_cpu(const Arrays& in, array& out) override {
    const float* y = in[0].data<float>();
    const float* dy = in[1].data<float>();
    float* dx = reuse(in[1], out);
    if (out.size() == 0) {
      return;
    }
    const size_t cols = columns(out), rows = out.size() / cols;
    queue(stream(), [=] { mlxk_softmax_backward_f32(rows, cols, y, dy, dx); });
  }

  Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums, const Arrays&) override {
    auto composition = [s = stream()](const Arrays& x) -> Arrays {
      auto product = mx::sum(mx::multiply(x[0], x[1], s), -1, true, s);
      return {mx::multiply(x[0], mx::subtract(x[1], product, s), s)};
    };
    return composed_vjp(composition, primals, cotangents, argnums);
  }
};

array softmax_gradient(const array& y, const array& dy, const mx::Stream& s) {
  return array(y.shape(), mx::float32, std::make_shared<SoftmaxGradient>(s), {dense(y, s), dense(dy, s)});
}

// With `queries` above 0 the mask is causal.
class Softmax : public CpuPrimitive {
 public:
  Softmax(const mx::Stream& s, int queries) : CpuPrimitive(s), queries_(queries) {}
  MLXRS_SHAPE_OF_INPUT()

  const char* name() const override {
    return queries_ > 0 ? "MlxrsCausalSoftmax" : "MlxrsSoftmax";
  }

  bool is_equivalent(const mx::Primitive& other) const override {
    return queries_ == static_cast<const Softmax&>(other).queries_;
  }

  void eval_cpu(const Arrays& in, array& out) override {
    const float* x = in[0].data<float>();
    float* y = reuse(in[0], out);
    if (out.size() == 0) {
      return;
    }
    const size_t cols = columns(out), rows = out.size() / cols;
    if (queries_ > 0) {
      const size_t queries = static_cast<size_t>(queries_);
      queue(stream(), [=] { mlxk_causal_softmax_f32(rows, cols, queries, x, y); });
    } else {
      queue(stream(), [=] { mlxk_softmax_f32(rows, cols, x, y); });
    }
  }

  Arrays vjp(const Arrays&, const Arrays& cotangents, const std::vector<int>&, const Arrays& outputs) override {
    return {gradient(outputs[0], cotangents[0])};
  }

  Arrays jvp(const Arrays& primals, const Arrays& tangents, const std::vector<int>&) override {
    auto again = std::make_shared<Softmax>(stream(), queries_);
    auto y = array(primals[0].shape(), mx::float32, std::move(again), {primals[0]});
    // The Jacobian is symmetric.
    return {gradient(y, tangents[0])};
  }

 private:
  // Hidden keys have weight 0 and so a gradient of 0, save in rows that see no key: MLX replaces their scores.
  array gradient(const array& y, const array& dy) {
    auto dx = softmax_gradient(y, dy, stream());
    const int keys = y.shape(-1);
    if (queries_ <= keys) {
      return dx;
    }
    auto blind = mx::less(mx::arange(queries_, stream()), array(queries_ - keys), stream());
    auto repeats = y.shape(-2) / queries_;
    auto rows = mx::expand_dims(mx::tile(blind, {repeats}, stream()), 1, stream());
    return mx::where(rows, array(0.0f), dx, stream());
  }

  int queries_;
};

array softmax(const array& x, const mx::Stream& s) {
  require_cpu("softmax", s);
  require_floats("softmax", "x", x);
  require_last_axis("softmax", x);
  return array(x.shape(), mx::float32, std::make_shared<Softmax>(s, 0), {dense(x, s)});
}

array causal_softmax(const array& scores, int queries, const mx::Stream& s) {
  const char* op = "causal_softmax";
  require_cpu(op, s);
  require_floats(op, "scores", scores);
  require(scores.ndim() >= 2, op, "scores have shape " + shown(scores.shape()) + ", wanted at least two axes");
  require(
      queries > 0 && scores.shape(-2) % queries == 0,
      op,
      "scores have shape " + shown(scores.shape()) + ", wanted rows in multiples of " + shown(queries) + " queries");
  return array(scores.shape(), mx::float32, std::make_shared<Softmax>(s, queries), {dense(scores, s)});
}

// ---- logsumexp ----

class LogSumExpGradient : public CpuPrimitive {
 public:
  using CpuPrimitive::CpuPrimitive;
  DEFINE_NAME(MlxrsLogSumExpGradient)
  DEFINE_DEFAULT_IS_EQUIVALENT()
  MLXRS_SHAPE_OF_INPUT()

  // Inputs: x, its logsumexp and the cotangent of that.
  void eval_cpu(const Arrays& in, array& out) override {
    const float* x = in[0].data<float>();
    const float* y = in[1].data<float>();
    const float* dy = in[2].data<float>();
    float* dx = reuse(in[0], out);
    if (out.size() == 0) {
      return;
    }
    const size_t cols = columns(out), rows = out.size() / cols;
    queue(stream(), [=] { mlxk_logsumexp_backward_f32(rows, cols, x, y, dy, dx); });
  }

  Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums, const Arrays&) override {
    auto composition = [s = stream()](const Arrays& x) -> Arrays {
      return {mx::multiply(x[2], mx::exp(mx::subtract(x[0], x[1], s), s), s)};
    };
    return composed_vjp(composition, primals, cotangents, argnums);
  }
};

class LogSumExp : public CpuPrimitive {
 public:
  using CpuPrimitive::CpuPrimitive;
  DEFINE_NAME(MlxrsLogSumExp)
  DEFINE_DEFAULT_IS_EQUIVALENT()

  std::vector<mx::Shape> output_shapes(const Arrays& in) override {
    auto shape = in[0].shape();
    shape.back() = 1;
    return {shape};
  }

  void eval_cpu(const Arrays& in, array& out) override {
    const float* x = in[0].data<float>();
    float* y = allocate(out);
    const size_t rows = out.size(), cols = columns(in[0]);
    if (rows > 0) {
      queue(stream(), [=] { mlxk_logsumexp_f32(rows, cols, x, y); });
    }
  }

  Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>&, const Arrays& outputs) override {
    auto primitive = std::make_shared<LogSumExpGradient>(stream());
    Arrays inputs = {primals[0], outputs[0], dense(cotangents[0], stream())};
    return {array(primals[0].shape(), mx::float32, std::move(primitive), std::move(inputs))};
  }

  Arrays jvp(const Arrays& primals, const Arrays& tangents, const std::vector<int>&) override {
    auto weights = softmax(primals[0], stream());
    return {mx::sum(mx::multiply(weights, tangents[0], stream()), -1, true, stream())};
  }
};

array logsumexp(const array& x, const mx::Stream& s) {
  require_cpu("logsumexp", s);
  require_floats("logsumexp", "x", x);
  require_last_axis("logsumexp", x);
  auto shape = x.shape();
  shape.back() = 1;
  return array(std::move(shape), mx::float32, std::make_shared<LogSumExp>(s), {dense(x, s)});
}

} // namespace mlxrs

extern "C" int mlxrs_softmax(mlx_array* res, mlx_array x, mlx_stream s) {
  return mlxrs::answer(res, [&] { return mlxrs::softmax(mlx_array_get_(x), mlx_stream_get_(s)); });
}

extern "C" int mlxrs_causal_softmax(mlx_array* res, mlx_array scores, int queries, mlx_stream s) {
  return mlxrs::answer(
      res, [&] { return mlxrs::causal_softmax(mlx_array_get_(scores), queries, mlx_stream_get_(s)); });
}

extern "C" int mlxrs_logsumexp(mlx_array* res, mlx_array x, mlx_stream s) {
  return mlxrs::answer(res, [&] { return mlxrs::logsumexp(mlx_array_get_(x), mlx_stream_get_(s)); });
}
