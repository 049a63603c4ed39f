#include "nibble/models/role.h"

#include <algorithm>
#include <array>

namespace nibble {
namespace {

struct RoleRow {
  Role role;
  std::string_view name;
};

constexpr std::array kRows{
    RoleRow{Role::kRoutedExpert, "routed_expert"},
    RoleRow{Role::kSharedExpert, "shared_expert"},
    RoleRow{Role::kDenseMlp, "dense_mlp"},
    RoleRow{Role::kAttention, "attention"},
    RoleRow{Role::kLatent, "latent"},
    RoleRow{Role::kRouter, "router"},
    RoleRow{Role::kNorm, "norm"},
    RoleRow{Role::kEmbedding, "embedding"},
    RoleRow{Role::kHead, "head"},
    RoleRow{Role::kMtp, "mtp"},
    RoleRow{Role::kBias, "bias"},
    RoleRow{Role::kUnknown, "unknown"},
};

constexpr auto kRoles = [] {
  std::array<Role, kRows.size()> roles{};
  std::transform(kRows.begin(), kRows.end(), roles.begin(), [](const RoleRow& row) { return row.role; });
  return roles;
}();

}  // namespace

std::string_view role_name(Role role) {
  for (const auto& row : kRows) {
    if (row.role == role) return row.name;
  }
  return "unknown";
}

std::optional<Role> parse_role(std::string_view name) {
  for (const auto& row : kRows) {
    if (row.name == name) return row.role;
  }
  return std::nullopt;
}

std::span<const Role> all_roles() { return kRoles; }

}  // namespace nibble
