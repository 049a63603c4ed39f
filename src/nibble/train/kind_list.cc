// The list of what the library can be asked for. Rows and nothing else.
#include "nibble/train/kind.h"

#define NIBBLE_TRAIN_KINDS(ROW) ROW(kTableWalkKind) ROW(kConfigKind) ROW(kRecipesKind)

namespace nibble {

#define ROW(kind) extern const TrainKind kind;
NIBBLE_TRAIN_KINDS(ROW)
#undef ROW

std::span<const TrainKind* const> train_kinds() {
#define ROW(kind) &kind,
  static const TrainKind* const kinds[] = {NIBBLE_TRAIN_KINDS(ROW)};
#undef ROW
  return kinds;
}

}  // namespace nibble
