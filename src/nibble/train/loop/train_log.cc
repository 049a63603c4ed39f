#include "nibble/train/loop/train_log.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "nibble/base/error.h"
#include "nibble/base/text_file.h"

namespace nibble {

TrainLog::TrainLog(const Path& path, uint64_t next_step) : path_(path) {
  std::error_code none;
  if (next_step != 0 && std::filesystem::exists(path, none)) {
    for_lines(path, [&](std::string_view line) {
      if (line.empty()) return;
      const Json event = parse_json(line, path.string());
      const std::string kind = json_string(event, "event", path.string()).value_or("");
      const uint64_t step = json_uint(event, "step", path.string()).value_or(0);
      if (kind == "end" || (kind == "step" && step >= next_step) || (kind == "evaluate" && step > next_step)) return;
      add(event);
    });
  }
  TextFile kept(path_);  // a stopped run may have left half a line
  kept.add(waiting_);
  kept.commit();
  waiting_.clear();
}

void TrainLog::remember(const Json& event) {
  const std::string kind = json_string(event, "event", path_.string()).value_or("");
  if (kind != "step") {
    rare_.push_back(event);
    return;
  }
  losses_.push_back(
      {json_uint(event, "step", path_.string()).value_or(0), json_double(event, "loss", path_.string()).value_or(0)});
}

void TrainLog::add(const Json& event) {
  remember(event);
  waiting_ += event.dump() + "\n";
}

void TrainLog::flush() {
  if (waiting_.empty()) return;
  std::ofstream file(path_, std::ios::app | std::ios::binary);
  file << waiting_ << std::flush;
  if (!file) throw Error("the log cannot be written").file(path_.string()).way_out("make room on the disk");
  waiting_.clear();
}

const Json* TrainLog::find(const std::string& event) const {
  for (const Json& one : rare_) {
    if (json_string(one, "event", path_.string()) == event) return &one;
  }
  return nullptr;
}

}  // namespace nibble
