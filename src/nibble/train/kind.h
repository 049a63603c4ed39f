// What the library can be asked for: a file with a function each, and a row in kind_list.cc.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "nibble/base/json.h"

namespace nibble {

// Whoever asked. Both are called from the thread that runs the kind.
struct TrainHost {
  int threads = 1;
  std::function<void(const std::string& text)> show = [](const std::string&) {};  // a status line
  std::function<void(const std::string& text)> note = [](const std::string&) {};  // a line that stays
};

struct TrainAnswer {
  std::string json;  // an object: what --json prints
  std::string text;  // what is printed without it
};

struct TrainKind {
  std::string_view name;
  // `request` is the whole object of plugin.h. Error for what it holds and cannot be.
  TrainAnswer (*run)(const Json& request, const TrainHost& host);
};

// The list: kind_list.cc holds its rows and nothing else.
std::span<const TrainKind* const> train_kinds();

}  // namespace nibble
