// `nibble.json`, stored beside the weights: the recipe, every tensor's format, rule, error and input hashes, every
// output file's SHA-256. Nothing in it depends on time, host, threads or worker.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/json.h"
#include "nibble/base/text_file.h"
#include "nibble/quantize/output_plan.h"
#include "nibble/quantize/unit_encoder.h"

namespace nibble {

// One row of "tensors".
Json tensor_row(const Checkpoint& source, const OutWeight& out, const QuantizeRequest& request, const OutResult& result,
                const std::map<uint32_t, std::string>& hashes, const Model& model);

struct OutputFileRecord {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256;
};

// Everything before the rows, as the beginning of an object.
std::string manifest_head(const Json& recipe, const Checkpoint& source, const std::vector<OutputFileRecord>& files,
                          bool sha256_inputs);

// The file, row by row: half a million of them do not have to be in memory together.
class ManifestWriter {
 public:
  ManifestWriter(const Path& path, const std::string& head);
  void add(std::string_view row);
  void commit();

 private:
  TextFile file_;
  bool empty_ = true;
};

// What nibble.json and the journal (which holds the same rows until the end) will take at most, to within a few per
// cent: for the question whether the disk has room, before anything is written. `side_names`: of the files beside the
// shards.
uint64_t record_bytes(const Checkpoint& source, const Model& model, const OutputPlan& plan,
                      const QuantizeRequest& request, const Json& recipe, const std::vector<std::string>& side_names);

inline constexpr const char* kManifestName = "nibble.json";
inline constexpr uint64_t kManifestLimit = uint64_t{4} << 30;  // more is none of ours

}  // namespace nibble
