#include "nibble/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "nibble/base/error.h"

namespace nibble::log {
namespace {

std::shared_ptr<spdlog::sinks::stderr_color_sink_mt>& sink() {
  static auto instance = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  return instance;
}

spdlog::logger& logger() {
  static auto instance = [] {
    auto made = std::make_shared<spdlog::logger>("nibble", sink());
    made->set_pattern("nibble: %^%l%$: %v");
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::info, spdlog::level::warn, spdlog::level::err,
                                                   spdlog::level::off};
  logger().set_level(kLevels[static_cast<int>(level)]);
}

void set_color(bool on) { sink()->set_color_mode(on ? spdlog::color_mode::automatic : spdlog::color_mode::never); }

void info(const std::string& message) { logger().info(printable(message)); }
void warning(const std::string& message) { logger().warn(printable(message)); }
void error(const std::string& message) { logger().error(printable(message)); }

}  // namespace nibble::log
