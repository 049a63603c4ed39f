#include "nibble/certify/tasks/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>
#include <utility>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/certify/tasks/task_row.h"

namespace nibble {
namespace {

struct TaskKey {
  std::string_view name;
  uint64_t TaskOptions::* value;
};

constexpr TaskKey kKeys[] = {
    {"symbols", &TaskOptions::symbols}, {"tables", &TaskOptions::tables}, {"seed", &TaskOptions::table_seed}};

// What is wrong, what was written, and which of `names` it may have been meant for.
Error unknown_name(const char* message, const char* what, std::string_view written, std::string_view text,
                   const std::vector<std::string>& names) {
  Error error(message);
  error.value(what, std::string(written));
  if (written != text) error.value("task", std::string(text));
  if (const std::string nearest = nearest_name(written, names); !nearest.empty()) {
    error.way_out(fmt::format("did you mean {}?", nearest));
  }
  error.way_out(fmt::format("use one of {}", fmt::join(names, ", ")));
  return error;
}

const TaskRow& find_row(std::string_view name, std::string_view text) {
  std::vector<std::string> names;
  for (const TaskRow* row : task_rows()) {
    if (row->name == name) return *row;
    names.emplace_back(row->name);
  }
  throw unknown_name("no task has this name", "name", name, text, names);
}

const TaskKey& find_key(std::string_view name, std::string_view text) {
  std::vector<std::string> names;
  for (const TaskKey& key : kKeys) {
    if (key.name == name) return key;
    names.emplace_back(key.name);
  }
  throw unknown_name("tasks have no such option", "option", name, text, names);
}

uint64_t parse_value(std::string_view word, const TaskKey& key, std::string_view text) {
  uint64_t number = 0;
  const auto [rest, code] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (code == std::errc() && rest == word.data() + word.size()) return number;
  throw Error("a task's option is not a whole number below 2^64")
      .value(std::string(key.name), std::string(word))
      .value("task", std::string(text))
      .way_out(fmt::format("write it like {}=7", key.name));
}

// `list`: "symbols=64,tables=4"; `text`: all that was written, for messages.
TaskOptions parse_options(std::string_view list, std::string_view text) {
  TaskOptions options;
  std::vector<std::string_view> seen;
  for (const std::string_view part : split(list, ',')) {
    const size_t sign = part.find('=');
    if (sign == std::string_view::npos) {
      throw Error("a task's option is not written KEY=NUMBER")
          .value("option", std::string(part))
          .value("task", std::string(text))
          .way_out("write it like table-walk:symbols=64,tables=4,seed=7");
    }
    const std::string_view name = part.substr(0, sign), word = part.substr(sign + 1);
    const TaskKey& key = find_key(name, text);
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      throw Error(fmt::format("a task's option is given twice: {}", name))
          .value("first", options.*key.value)
          .value("second", std::string(word))
          .value("task", std::string(text))
          .way_out("keep one of them");
    }
    seen.push_back(name);
    options.*key.value = parse_value(word, key, text);
  }
  return options;
}

void check_limits(const TaskOptions& options) {
  if (options.symbols < 2) {
    throw Error("a task needs two symbols at least: with fewer no step can be wrong")
        .value("symbols", options.symbols)
        .way_out("symbols=64");
  }
  if (options.tables < 1) {
    throw Error("a task needs one table at least").value("tables", options.tables).way_out("tables=1");
  }
  const uint64_t factors[] = {options.tables, options.symbols, options.symbols};
  const auto entries = checked_product(factors);
  if (entries && *entries <= kMostTableEntries) return;
  Error error("more entries of tables than any model learns");
  error.value("symbols", options.symbols)
      .value("tables", options.tables)
      .value("entries", entries ? std::to_string(*entries) : "2^64 or more")
      .value("at_most", kMostTableEntries);
  const uint64_t of_each = kMostTableEntries / options.tables;
  const auto most = static_cast<uint64_t>(std::sqrt(static_cast<double>(of_each)));
  if (most >= 2) error.way_out(fmt::format("symbols={} or fewer", most));
  if (options.tables > 1) error.way_out("fewer tables");
  throw std::move(error);
}

}  // namespace

uint64_t Task::vocabulary() const { return options().symbols + (options().tables > 1 ? options().tables : 0); }

std::vector<std::string_view> task_names() {
  std::vector<std::string_view> names;
  for (const TaskRow* row : task_rows()) names.push_back(row->name);
  return names;
}

std::unique_ptr<Task> make_task(std::string_view text, uint64_t chain_seed) {
  const size_t colon = text.find(':');
  const TaskRow& row = find_row(text.substr(0, colon), text);
  TaskOptions options;
  if (colon != std::string_view::npos) options = parse_options(text.substr(colon + 1), text);
  options.chain_seed = chain_seed;
  check_limits(options);
  return row.make(options);
}

}  // namespace nibble
