#include <array>

#include "nibble/cli/commands.h"

namespace nibble {

std::span<const Command> commands() {
  static constexpr std::array kList{kPlanCommand,    kInspectCommand, kVerifyCommand,   kQuantizeCommand,
                                    kCertifyCommand, kTrainCommand,   kTokenizeCommand, kGenerateCommand,
                                    kBenchCommand,   kKernelsCommand};
  return kList;
}

}  // namespace nibble
