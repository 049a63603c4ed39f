// A whole certificate: chains, one streamed pass of each model over them, statistics. The models are read from their
// files layer by layer; only writing chains and free-running tasks need one of them in memory.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/certify/certificate.h"
#include "nibble/certify/chain.h"
#include "nibble/certify/prompts.h"

namespace nibble {

struct CertifyRequest {
  std::string reference;
  std::vector<std::string> candidates;
  std::optional<std::string> chains, prompts, task;  // at most one; none: the bundled prompts
  uint64_t length = 256;                             // tokens of an answer, at most; choices of a task's chain
  uint64_t task_chains = 64;
  std::string scheme = "w4a16", kv = "bf16";
  std::optional<std::string> kv_scale;
  std::string noise = "bf16";  // scheme of the reference's other arithmetic path; "none"
  SamplerOptions sampler;
  BootstrapOptions bootstrap;
  // Of each candidate: how many of its widest forks it goes on from, itself; needs it in memory.
  uint64_t fork_texts = 0;
  // Which weights its first divergences come from (attribute.h): at most so many of them are tried; 0: not asked.
  uint64_t attribution_places = 0;
  int threads = 1;
};

struct CertifyResult {
  Certificate certificate;
  std::vector<Chain> chains;
  std::vector<std::string> prompt_texts;  // of each chain; empty where there is none
};

// `status` hears what is being done, a phrase each time it changes or goes on ("reads layer 3 of 30"). Error before any
// weight is read for models that are not of one architecture, chains outside the vocabulary or the positions, and
// memory that is not there.
CertifyResult certify(const CertifyRequest& request, const std::function<void(std::string_view)>& status);

}  // namespace nibble
