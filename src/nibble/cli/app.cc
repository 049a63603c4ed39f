#include "nibble/cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/base/parallel.h"
#include "nibble/base/strings.h"
#include "nibble/cli/command.h"
#include "nibble/quantize/request.h"

namespace nibble {
namespace {

Json error_json(const Error& error) {
  Json values = Json::object();
  for (const auto& [key, text] : error.values()) values[key] = text;
  return Json{{"error",
               {{"message", error.message()},
                {"file", error.file()},
                {"tensor", error.tensor()},
                {"values", std::move(values)},
                {"ways_out", error.ways_out()}}}};
}

// The message still goes to standard error when standard output is what fails: a closed pipe, a full disk.
void report(const Error& error, bool json) {
  try {
    if (json) print_json(error_json(error));
  } catch (const Error& lost) {
    if (lost.message() != error.message()) log::error(lost.what());
  }
  log::error(error.what());
}

int refuse(const Error& error, const CommonOptions& common) {
  report(error, common.json);
  return kExitRefused;
}

// What the parser of the command line refuses, before it is known whether --json was meant.
int refuse_usage(const std::string& message, int argc, const char* const* argv) {
  const bool json =
      std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  report(Error(message).way_out("nibble COMMAND --help shows the options and an example"), json);
  return kExitUsage;
}

std::string unknown_command(const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  const std::string nearest = nearest_name(word, names);
  return fmt::format("unknown command `{}`; {}the commands are: {}", printable(word),
                     nearest.empty() ? "" : fmt::format("did you mean `{}`? If not, ", nearest), fmt::join(names, " "));
}

void add_common(CLI::App& app, CommonOptions& common) {
  app.add_flag("--json", common.json, "one JSON object on standard output, nothing else there");
  app.add_flag("--quiet", common.quiet, "no progress and no notes");
  app.add_flag("--no-color", common.no_color, "no colours on the terminal");
  app.add_option("--threads", common.threads, "threads to use (default: the cores this process may use)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
}

int run_guarded(const std::function<int()>& body, const CommonOptions& common) {
  try {
    return body();
  } catch (const UsageError& error) {
    refuse(error, common);
    return kExitUsage;
  } catch (const Error& error) {
    return refuse(error, common);
  } catch (const std::filesystem::filesystem_error& error) {
    return refuse(Error(fmt::format("the file system refuses: {}", error.code().message()))
                      .file(error.path1().string())
                      .way_out("check the path, its permissions and the disk behind it"),
                  common);
  } catch (const std::bad_alloc&) {
    return refuse(Error("out of memory").way_out("use fewer --threads, or a machine with more memory"), common);
  } catch (const std::exception& error) {
    return refuse(
        Error(fmt::format("unexpected: {}", error.what())).way_out("please report this with the command that led here"),
        common);
  }
}

}  // namespace

int CommonOptions::thread_count() const { return threads > 0 ? threads : default_threads(); }

int run_app(int argc, const char* const* argv) {
  // A closed pipe and a file at the size limit are errors of the write, with a message.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app{"nibble: Mixture-of-Experts checkpoints in four bits, planned, made, proved and run", "nibble"};
  app.set_version_flag("--version", std::string("nibble ") + kToolVersion);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  CommonOptions common;
  std::vector<std::pair<CLI::App*, std::function<int()>>> bodies;
  for (const Command& command : commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    bodies.emplace_back(sub, command.setup(*sub, common));
    add_common(*sub, common);
  }
  if (argc > 1 && argv[1][0] != '-' &&
      std::none_of(bodies.begin(), bodies.end(), [&](const auto& b) { return b.first->get_name() == argv[1]; })) {
    return refuse_usage(unknown_command(argv[1]), argc, argv);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error) == 0 ? kExitDone : kExitUsage;  // --help, --version
    return refuse_usage(error.what(), argc, argv);
  }
  log::set_color(!common.no_color);
  if (common.quiet) log::set_level(log::Level::kWarning);
  for (const auto& [sub, body] : bodies) {
    if (sub->parsed()) return run_guarded(body, common);
  }
  return kExitUsage;
}

}  // namespace nibble
