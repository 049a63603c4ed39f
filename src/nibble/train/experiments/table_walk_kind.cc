#include "nibble/train/kind.h"

namespace nibble {
namespace {

TrainAnswer run(const Json& /*request*/, const TrainHost& /*host*/) { return {"{}", ""}; }

}  // namespace

extern const TrainKind kTableWalkKind;
const TrainKind kTableWalkKind{"table-walk", run};

}  // namespace nibble
