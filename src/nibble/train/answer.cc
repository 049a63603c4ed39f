#include "nibble/train/answer.h"

#include <fmt/format.h>

#include <new>
#include <nlohmann/json.hpp>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/train/threads.h"

namespace nibble {
namespace {

std::string error_answer(const Error& error) {
  Json values = Json::array();
  for (const auto& [key, text] : error.values()) values.push_back(Json::array({key, text}));
  return json_text({{"error",
                     {{"message", error.message()},
                      {"file", error.file()},
                      {"tensor", error.tensor()},
                      {"values", std::move(values)},
                      {"ways_out", error.ways_out()},
                      {"contexts", error.contexts()}}}});
}

const TrainKind& kind_of(const Json& request) {
  const std::string wanted = json_string(request, "kind", "the request").value_or("");
  std::vector<std::string_view> names;
  for (const TrainKind* kind : train_kinds()) {
    if (kind->name == wanted) return *kind;
    names.push_back(kind->name);
  }
  throw Error("the training library cannot do this")
      .value("asked", wanted)
      .way_out(fmt::format("it can do: {}", fmt::join(names, ", ")));
}

// libtorch's messages go on with a backtrace.
std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

}  // namespace

std::string answer_request(std::string_view request, const TrainHost& host) {
  try {
    const Json parsed = parse_json(request, "the request");
    const TrainKind& kind = kind_of(parsed);
    set_train_threads(host.threads);
    const TrainAnswer answer = kind.run(parsed, host);
    return json_text({{"result", parse_json(answer.json, "the answer")}, {"text", answer.text}});
  } catch (const Error& error) {
    return error_answer(error);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return error_answer(Error(fmt::format("libtorch refuses: {}", first_line(error.what())))
                            .way_out("please report this with the command that led here"));
  }
}

}  // namespace nibble
