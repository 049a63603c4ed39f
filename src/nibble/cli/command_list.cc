#include <array>

#include "nibble/cli/commands.h"

namespace nibble {

std::span<const Command> commands() {
  static constexpr std::array list{kInspectCommand, kVerifyCommand, kQuantizeCommand};
  return list;
}

}  // namespace nibble
