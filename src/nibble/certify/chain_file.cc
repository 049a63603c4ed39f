#include "nibble/certify/chain_file.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/base/text_file.h"

namespace nibble {
namespace {

Error line_error(const char* what, const std::string& where) {
  return Error(what).file(where).way_out(R"(write {"prompt": [ID, …], "answer": [ID, …]} on each line)");
}

template <typename Number>
std::vector<Number> numbers(const Json& object, const char* key, const std::string& where) {
  std::vector<Number> all;
  const Json* list = json_member(object, key);
  if (list == nullptr) return all;
  if (!list->is_array()) throw line_error("a chain has something else than a list of numbers", where).value("key", key);
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<Number>::max());
  for (const Json& one : *list) {
    if (!one.is_number_unsigned() || one.get<uint64_t>() > kMost) {
      throw line_error("a chain's list holds what is no number of a token or place", where)
          .value("key", key)
          .value("found", one.dump().substr(0, 40));
    }
    all.push_back(one.get<Number>());
  }
  return all;
}

void check_given(const Chain& chain, const std::string& where) {
  for (size_t i = 0; i < chain.given.size(); ++i) {
    const bool ascends = i == 0 || chain.given[i] > chain.given[i - 1];
    if (ascends && chain.given[i] < chain.answer.size()) continue;
    throw line_error("a chain's given positions do not ascend within its answer", where)
        .value("position", chain.given[i])
        .value("answer_tokens", chain.answer.size());
  }
  if (chain.given.size() == chain.answer.size()) {
    throw line_error("a chain's answer has no token that was chosen", where).value("given", chain.given.size());
  }
}

Chain chain_of(const Json& object, const std::string& where, uint64_t line) {
  if (!object.is_object()) throw line_error("a line is no chain", where);
  Chain chain;
  chain.prompt = numbers<TokenId>(object, "prompt", where);
  chain.answer = numbers<TokenId>(object, "answer", where);
  chain.given = numbers<uint64_t>(object, "given", where);
  if (chain.prompt.empty() || chain.answer.empty()) {
    throw line_error("a chain needs a prompt and an answer of at least one token each", where)
        .value("prompt_tokens", chain.prompt.size())
        .value("answer_tokens", chain.answer.size());
  }
  check_given(chain, where);
  chain.capped = json_bool(object, "capped", where).value_or(false);
  chain.cluster = json_uint(object, "cluster", where).value_or(line);
  return chain;
}

}  // namespace

std::vector<Chain> read_chains(const Path& path) {
  std::vector<Chain> chains;
  uint64_t line = 0;
  for_lines(path, [&](std::string_view text) {
    const std::string where = fmt::format("{}, line {}", path.string(), line + 1);
    if (!text.empty()) chains.push_back(chain_of(parse_json(text, where), where, line));
    ++line;
  });
  if (chains.empty()) throw line_error("no chain is there", path.string()).value("lines", line);
  return chains;
}

std::string chain_line(const Chain& chain) {
  Json object = {{"prompt", chain.prompt}, {"answer", chain.answer}, {"capped", chain.capped}};
  if (!chain.given.empty()) object["given"] = chain.given;
  object["cluster"] = chain.cluster;
  return object.dump() + "\n";
}

}  // namespace nibble
