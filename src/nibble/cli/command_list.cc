#include <array>

#include "nibble/cli/commands.h"

namespace nibble {

std::span<const Command> commands() {
  static constexpr std::array kList{kPlanCommand,     kInspectCommand,  kVerifyCommand,
                                    kQuantizeCommand, kTokenizeCommand, kBenchCommand};
  return kList;
}

}  // namespace nibble
