// A command of the program: one file each, a row in command_list.cc. Commands parse with CLI11, do their work through
// the modules below, and print either text or one JSON object. Errors are thrown; run() in app.cc words them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/json.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}

namespace nibble {

// Options that every command takes.
struct CommonOptions {
  bool json = false, quiet = false, no_color = false;
  int threads = 0;  // 0: default_threads()
  int thread_count() const;
};

// Options that contradict each other or hold what cannot be: worded like any error, exit code 2.
class UsageError : public Error {
 public:
  explicit UsageError(const Error& error) : Error(error) {}
};

enum ExitCode { kExitDone = 0, kExitRefused = 1, kExitUsage = 2 };

struct Command {
  const char* name;
  const char* summary;
  // Adds options to `app` and returns what runs once they are parsed: the exit code.
  std::function<int()> (*setup)(CLI::App& app, CommonOptions& common);
};

std::span<const Command> commands();

// Text to standard output; throws if it cannot be written (a closed pipe, a full disk).
void print_out(const std::string& text);
void print_json(const Json& value);

}  // namespace nibble
