#include "nibble/models/policy.h"

namespace nibble {

Keep16 keep16_by_role(Role role) {
  switch (role) {
    case Role::kRoutedExpert: return Keep16::kFree;
    case Role::kSharedExpert:
    case Role::kDenseMlp:
    case Role::kAttention:
    case Role::kLatent:
    case Role::kHead:
    case Role::kMtp:
    case Role::kUnknown: return Keep16::kUsually;
    case Role::kRouter:
    case Role::kNorm:
    case Role::kEmbedding:
    case Role::kBias: return Keep16::kAlways;
  }
  return Keep16::kAlways;
}

Keep16 keep16(const ParamSpec& param) {
  if (param.shape.size() < 2) return Keep16::kAlways;
  if (param.role != Role::kMtp) return keep16_by_role(param.role);
  if (param.expert >= 0 || param.fusion != Fusion::kNone) return Keep16::kFree;
  return param.projection == Projection::kNone ? Keep16::kAlways : Keep16::kUsually;
}

}  // namespace nibble
