#include "nibble/quantize/unit_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/recast.h"
#include "nibble/quantize/source_rows.h"
#include "nibble/quantize/source_scales.h"
#include "nibble/quantize/unify_scales.h"
#include "nibble/quantize/unit_errors.h"
#include "nibble/quantize/unit_steps.h"

namespace nibble {
namespace {

constexpr uint64_t kRowCut = 128;  // cuts lie on multiples of the tallest block

class UnitEncoder {
 public:
  UnitEncoder(const EncodeContext& context, const Unit& unit, const PartSink& sink)
      : c_(context), unit_(unit), sink_(sink), rows_(*context.source, *context.model, context.keep_bytes) {
    result_.outs.resize(unit.outs.size());
  }

  UnitResult run() {
    for (const Step& step : steps_of(*c_.plan, unit_)) run_step(step);
    rows_.forget();
    result_.tensor_hashes = rows_.finish_hashes(source_weights(*c_.plan, unit_));
    if (c_.progress) c_.progress(unit_.bytes_in - std::min(unit_.bytes_in, reported_));
    return std::move(result_);
  }

 private:
  const OutWeight& out(const SliceTask& task) const { return c_.plan->outs[task.out]; }
  const Weight& first_source(const SliceTask& task) const { return nibble::first_source(*c_.model, out(task)); }
  OutResult& result(const SliceTask& task) { return result_.outs[task.index]; }

  void run_step(const Step& step) {
    switch (out(step.front()).route) {
      case Route::kRawCopy: return copy_raw(step.front());
      case Route::kDense: return write_dense(step.front());
      case Route::kMove: return move(step);
      case Route::kRecast: return recast(step);
      case Route::kEncode: return encode(step);
    }
  }

  // ---- raw copies
  void copy_raw(const SliceTask& task) {
    const OutWeight& weight = out(task);
    check_raw(weight.pieces.front().weight);
    for (uint32_t part = 0; part < weight.raw_tensors.size(); ++part) {
      rows_.copy_tensor(
          weight.raw_tensors[part], c_.chunk_bytes,
          [&](uint64_t offset, std::span<const std::byte> bytes) { sink_(task.out, part, offset, bytes); });
    }
  }

  // What is copied as it is stored need not be understood, but what is understood is looked at as on every other route.
  void check_raw(uint32_t index) {
    const Weight& weight = c_.model->table.weights()[index];
    if (weight.opaque || weight.format.is_dense() || weight.elements() == 0) return;
    for (uint64_t slice = 0; slice < weight.slices(); ++slice) rows_.hold(index, slice);
    rows_.forget();
  }

  uint64_t chunk_rows(const OutWeight& weight) const {
    if (weight.convention != nullptr && weight.convention->takes_whole_slices(weight.request(c_.plan->model_dtype)))
      return weight.rows();
    const uint64_t row_bytes = std::max<uint64_t>(1, weight.cols() * 2);
    return std::max(kRowCut, c_.chunk_bytes / row_bytes / kRowCut * kRowCut);
  }

  template <typename Body>
  void for_chunks(const SliceTask& task, const Body& body) {
    const OutWeight& weight = out(task);
    const uint64_t step = chunk_rows(weight);
    for (uint64_t begin = 0; begin < weight.rows(); begin += step) {
      const uint64_t count = std::min(step, weight.rows() - begin);
      body(begin, count, rows_.dense(weight, task.slice, begin, count));
    }
  }

  // ---- dense targets
  void write_dense(const SliceTask& task) {
    const OutWeight& weight = out(task);
    const uint64_t element = element_bits(weight.format.element) / 8;
    const uint64_t slice_bytes = weight.rows() * weight.cols() * element;
    // A dense source may hold what it likes; a scale that is no number is a broken file.
    const bool decoded = !first_source(task).format.is_dense();
    std::vector<std::byte> converted;
    std::vector<std::byte> transposed(weight.transposed ? slice_bytes : 0);
    for_chunks(task, [&](uint64_t begin, uint64_t count, const DenseView& rows) {
      if (decoded) refuse_bad_rows(task, begin, rows);
      converted.resize(count * weight.cols() * element);
      convert(rows, weight.format.element, converted.data());
      if (!weight.transposed)
        return sink_(task.out, 0, task.slice * slice_bytes + begin * weight.cols() * element, converted);
      for (uint64_t r = 0; r < count; ++r) {
        for (uint64_t k = 0; k < weight.cols(); ++k) {
          std::memcpy(transposed.data() + (k * weight.rows() + begin + r) * element,
                      converted.data() + (r * weight.cols() + k) * element, element);
        }
      }
    });
    if (weight.transposed) sink_(task.out, 0, task.slice * slice_bytes, transposed);
  }

  // ---- low-bit targets
  void emit(const SliceTask& task, uint64_t begin, const EncodedView& rows) {
    const OutWeight& weight = out(task);
    for (const PartRun& run : weight.convention->emit(weight.request(c_.plan->model_dtype), task.slice, begin, rows)) {
      sink_(task.out, run.part, run.offset, run.content());
    }
  }

  void refuse_bad_rows(const SliceTask& task, uint64_t begin, const DenseView& rows) const {
    const AbsMax found = abs_max(rows);
    if (found.bad) refuse_value(place(task), begin, *found.bad);
  }

  UnitPlace place(const SliceTask& task) const {
    const Weight& source = first_source(task);
    return {c_.source->file_of(c_.source->tensors()[source.parts.front().tensor]), out(task).name, source.name,
            task.slice};
  }

  float group_amax(const Step& step) {
    float amax = 0;
    for (const SliceTask& task : step) {
      for_chunks(task, [&](uint64_t begin, uint64_t, const DenseView& rows) {
        const AbsMax found = abs_max(rows);
        if (found.bad) refuse_value(place(task), begin, *found.bad);
        amax = std::max(amax, found.amax);
      });
    }
    return amax;
  }

  // Holds the step's rows in memory when they are small enough to save the second read.
  void hold(const Step& step) {
    uint64_t bytes = 0;
    for (const SliceTask& task : step) bytes += out(task).rows() * out(task).cols() * 2;
    if (bytes > c_.keep_bytes / 2) return;
    for (const SliceTask& task : step) {
      for (const Piece& piece : pieces_of(out(task), task.slice)) rows_.hold(piece.weight, piece.slice);
    }
  }

  void encode(const Step& step) {
    const OutWeight& first = out(step.front());
    const SecondLevel level = first.format.two_level ? first.convention->second_level() : SecondLevel::kNone;
    const Quantizer quantizer({first.format, c_.request->rule, c_.request->bit_exact, level});
    TensorScale scale;
    if (quantizer.needs_amax()) {
      hold(step);
      const float amax = group_amax(step);
      scale = quantizer.tensor_scale(amax, c_.plan->model_dtype);
      if (scale.level != SecondLevel::kNone && (!std::isfinite(scale.value) || scale.value <= 0))
        refuse_tensor_scale(place(step.front()), amax, scale.value);
      scale = searched_scale(step, quantizer, scale);
    }
    for (const SliceTask& task : step) encode_rows(task, quantizer, scale);
    if (quantizer.needs_amax()) rows_.forget();
  }

  // The best of a search's scales for the whole matrix: one more pass over the rows, encoded with each of them.
  TensorScale searched_scale(const Step& step, const Quantizer& quantizer, const TensorScale& chosen) {
    const std::vector<TensorScale> candidates = quantizer.tensor_scale_candidates(chosen);
    if (candidates.size() == 1) return chosen;
    std::vector<ErrorSums> sums(candidates.size());
    std::vector<ErrorSums> errors;
    for (const SliceTask& task : step) {
      for_chunks(task, [&](uint64_t, uint64_t count, const DenseView& rows) {
        const DenseView input = exact_input(rows);
        EncodedMatrix& encoded = scratch(out(task).format, count, out(task).cols());
        for (size_t i = 0; i < candidates.size(); ++i) {
          errors.assign(count, {});
          quantizer.encode(input, candidates[i], encoded.mutable_view(), errors.data());
          for (const ErrorSums& row : errors) sums[i].add(row);
        }
      });
    }
    const auto best = std::ranges::min_element(sums, {}, &ErrorSums::noise);
    return candidates[static_cast<size_t>(best - sums.begin())];
  }

  void encode_rows(const SliceTask& task, const Quantizer& quantizer, const TensorScale& scale) {
    const OutWeight& weight = out(task);
    std::vector<ErrorSums> errors;
    for_chunks(task, [&](uint64_t begin, uint64_t count, const DenseView& rows) {
      EncodedMatrix& encoded = scratch(weight.format, count, weight.cols());
      encoded.tensor_scale = scale;
      errors.assign(count, {});
      const auto bad = quantizer.encode(exact_input(rows), scale, encoded.mutable_view(), errors.data());
      if (bad) refuse_value(place(task), begin, *bad);
      for (uint64_t row = 0; row < count; ++row) {
        if (!std::isfinite(errors[row].noise)) refuse_range(place(task), begin + row, errors[row]);
        result(task).errors.add(errors[row]);
      }
      emit(task, begin, encoded.view());
      report(rows.rows * rows.cols * element_bits(rows.element) / 8);
    });
  }

  // One matrix for all chunks of a shape: the encoder writes every byte, and fresh pages cost more than that.
  EncodedMatrix& scratch(const Format& format, uint64_t rows, uint64_t cols) {
    if (scratch_.rows != rows || scratch_.cols != cols || !(scratch_.format == format)) {
      scratch_ = EncodedMatrix::make_unfilled(format, rows, cols);
    }
    return scratch_;
  }

  // A library whose arithmetic is that of the weight's type sees decoded weights in the model's type.
  DenseView exact_input(const DenseView& rows) {
    if (c_.request->bit_exact == BitExact::kNone || rows.element == c_.plan->model_dtype ||
        rows.element != Element::kF32)
      return rows;
    const uint64_t row_bytes = rows.cols * element_bits(c_.plan->model_dtype) / 8;
    narrowed_.resize(rows.rows * row_bytes);
    convert(rows, c_.plan->model_dtype, narrowed_.data());
    return {narrowed_.data(), c_.plan->model_dtype, rows.rows, rows.cols, row_bytes};
  }

  // ---- moves and exact casts
  EncodedMatrix encoded(const SliceTask& task) { return rows_.encoded(out(task), task.slice); }

  void move(const Step& step) {
    std::vector<EncodedMatrix> matrices;
    for (const SliceTask& task : step) {
      matrices.push_back(encoded(task));
      NIBBLE_CHECK(matrices.back().column_group.empty());  // there is no place for it
      replace_zero_scales(&matrices.back());
    }
    if (c_.request->unify_scales && out(step.front()).format.two_level) {
      const auto reports = unify_second_level(matrices);
      for (size_t i = 0; i < step.size(); ++i) {
        if (reports[i].changed() > 0 && is_erased(matrices[i])) refuse_erased(place(step[i]), reports[i]);
        result(step[i]).scale_changes.add(reports[i], step[i].slice);
      }
    }
    if (out(step.front()).one_scale) refuse_differing_scales(step, matrices);
    for (size_t i = 0; i < step.size(); ++i) {
      matrices[i].tensor_scale = moved_scale(step[i], matrices[i].tensor_scale);
      matrices[i].format = out(step[i]).format;
      emit_whole(step[i], matrices[i]);
    }
  }

  // Scales far below the shared one all become zero, and the matrix with them.
  static bool is_erased(const EncodedMatrix& matrix) {
    return std::ranges::all_of(matrix.scales, [](std::byte scale) { return scale == std::byte{0}; });
  }

  void refuse_differing_scales(const Step& step, const std::vector<EncodedMatrix>& matrices) const {
    for (size_t i = 1; i < step.size(); ++i) {
      const float first = matrices.front().tensor_scale.value, other = matrices[i].tensor_scale.value;
      if (first == other) continue;
      refuse_differing_scale(place(step[i]), first, other);
    }
  }

  TensorScale moved_scale(const SliceTask& task, const TensorScale& scale) {
    const OutWeight& weight = out(task);
    if (!weight.format.two_level || scale.level == weight.convention->second_level()) return scale;
    if (scale.level == SecondLevel::kNone) return {weight.convention->second_level(), 1.0f};
    result(task).note = "the second-level scale is stored as its float32 reciprocal";
    return {weight.convention->second_level(), 1.0f / scale.value};
  }

  void emit_whole(const SliceTask& task, const EncodedMatrix& matrix) {
    const uint64_t step = chunk_rows(out(task)) * 4;
    for (uint64_t begin = 0; begin < matrix.rows; begin += step) {
      emit(task, begin, cut_rows(matrix, begin, std::min(step, matrix.rows - begin)));
    }
    report(matrix.bytes());
  }

  void recast(const Step& step) {
    const ExactRecast* cast = exact_recast(first_source(step.front()).format, out(step.front()).format);
    NIBBLE_CHECK(cast != nullptr);
    if (cast->shared != nullptr) return recast_under_shared_scale(step, *cast);
    for (const SliceTask& task : step) {
      if (const auto inexact = recast_one(task, *cast, {})) {
        round_instead(task, *inexact);
      } else if (!result(task).rounded_instead) {
        result(task).note = "exact";
      }
    }
  }

  void round_instead(const SliceTask& task, const Inexact& inexact) {
    OutResult& of_weight = result(task);
    if (!of_weight.rounded_instead) {
      std::string values;
      for (const auto& [key, value] : inexact.values) values += fmt::format(", {} {}", key, value);
      of_weight.note = fmt::format("{}: {} (slice {}, row {}, column {}{})", kRoundedInstead, inexact.reason,
                                   task.slice, inexact.row, inexact.column, values);
    }
    of_weight.rounded_instead = true;
    encode({task});
  }

  // Twice over the step: once for the scale, once to convert. What an earlier step has left must not push out of memory
  // what the second pass wants; but all slices of a stack may belong to the step, and be too much to keep.
  void recast_under_shared_scale(const Step& step, const ExactRecast& cast) {
    const SharedScale& scale = *cast.shared;
    rows_.forget();
    std::vector<ExponentSpan> spans;
    ExponentSpan all;
    for (const SliceTask& task : step) {
      spans.push_back(scale.scan(encoded(task).view()));
      all.add(spans.back());
    }
    const auto fits = [&](const ExponentSpan& span) { return span.empty() || span.high - span.low <= scale.max_span; };
    const OutWeight& first = out(step.front());
    const bool shared = first.one_scale || fits(all);
    for (size_t i = 0; i < step.size(); ++i) {
      const ExponentSpan& span = shared ? all : spans[i];
      if (!fits(span)) refuse_span(place(step[i]), span, scale.max_span, default_rule(out(step[i]).format).name());
      const auto inexact = recast_one(step[i], cast, scale.choose(span, first.convention->second_level()));
      NIBBLE_CHECK(!inexact);
      result(step[i]).note =
          shared ? "exact"
                 : fmt::format("exact with a second-level scale of its own: exponents {}..{} of the group span {} > {}",
                               all.low, all.high, all.high - all.low, scale.max_span);
    }
  }

  // Where the cast is not exact, and then nothing has been written.
  std::optional<Inexact> recast_one(const SliceTask& task, const ExactRecast& cast, const TensorScale& scale) {
    const EncodedMatrix source = encoded(task);
    EncodedMatrix target = EncodedMatrix::make(out(task).format, source.rows, source.cols);
    target.tensor_scale = scale;
    if (auto inexact = cast.convert(source.view(), scale, target.mutable_view())) return inexact;
    emit_whole(task, target);
    return std::nullopt;
  }

  void report(uint64_t bytes) {
    bytes = std::min(bytes, unit_.bytes_in - std::min(unit_.bytes_in, reported_));
    reported_ += bytes;
    if (c_.progress && bytes > 0) c_.progress(bytes);
  }

  const EncodeContext& c_;
  const Unit& unit_;
  const PartSink& sink_;
  SourceRows rows_;
  UnitResult result_;
  std::vector<std::byte> narrowed_;
  EncodedMatrix scratch_;
  uint64_t reported_ = 0;
};

}  // namespace

UnitResult encode_unit(const EncodeContext& context, const Unit& unit, const PartSink& sink) {
  return UnitEncoder(context, unit, sink).run();
}

}  // namespace nibble
