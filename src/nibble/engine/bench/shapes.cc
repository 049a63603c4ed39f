#include "nibble/engine/bench/shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "nibble/base/embedded_file.h"
#include "nibble/base/error.h"
#include "nibble/base/json.h"

namespace nibble {

std::span<const EmbeddedFile> bench_shape_files();

namespace {

BenchShape parse_shape(const EmbeddedFile& file) {
  const Json json = parse_json(file.text, std::string(file.name));
  BenchShape shape{std::string(file.name), {}};
  for (const Json& op : json.at("ops")) {
    shape.ops.push_back({op.at("name").get<std::string>(), op.value("experts", uint64_t{0}),
                         op.value("top_k", uint64_t{1}), op.at("n").get<uint64_t>(), op.at("k").get<uint64_t>()});
  }
  return shape;
}

}  // namespace

std::span<const BenchShape> bench_shapes() {
  static const std::vector<BenchShape> shapes = [] {
    std::vector<BenchShape> all;
    for (const EmbeddedFile& file : bench_shape_files()) all.push_back(parse_shape(file));
    return all;
  }();
  return shapes;
}

BenchShape find_shape(std::string_view name) {
  const std::string_view model = name.substr(0, name.find('/'));
  std::vector<std::string> known;
  for (const BenchShape& shape : bench_shapes()) {
    known.push_back(shape.name);
    if (shape.name != model) continue;
    if (model.size() == name.size()) return shape;
    for (const ShapeOp& op : shape.ops) {
      known.push_back(shape.name + "/" + op.name);
      if (op.name == name.substr(model.size() + 1)) return {shape.name, {op}};
    }
  }
  throw Error("no shape has this name")
      .value("shape", std::string(name))
      .way_out(fmt::format("known: {}", fmt::join(known, ", ")));
}

}  // namespace nibble
