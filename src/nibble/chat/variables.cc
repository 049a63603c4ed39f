#include "nibble/chat/variables.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

using Json = nlohmann::ordered_json;

class Converter {
 public:
  Converter(Run& run, const std::vector<std::string>& trusted) : run_(run), trusted_(trusted) {}

  Value value(const Json& json, const std::string& path, bool is_trusted) {
    run_.budget.step();
    const Deeper deeper(run_);
    is_trusted = is_trusted || std::ranges::find(trusted_, path) != trusted_.end();
    switch (json.type()) {
      case Json::value_t::boolean: return boolean(json.get<bool>());
      case Json::value_t::number_integer: return Value{Integer{json.get<int64_t>()}};
      case Json::value_t::number_unsigned: return Value{Integer{json.get<uint64_t>()}};
      case Json::value_t::number_float: return Value{json.get<double>()};
      case Json::value_t::string: return Value{text(json.get_ref<const std::string&>(), is_trusted)};
      case Json::value_t::array: return list(json, path, is_trusted);
      case Json::value_t::object: return dict(json, path, is_trusted);
      default: return Value{None{}};
    }
  }

 private:
  TextPtr text(const std::string& bytes, bool is_trusted) {
    return make_text(run_.budget, is_valid_utf8(bytes) ? bytes : valid_utf8(bytes), is_trusted);
  }

  // Paths only matter where something below them may be trusted.
  std::string below(const std::string& path, const std::string& part) const {
    const auto leads_on = [&](const std::string& each) { return each.size() > path.size() && each.starts_with(path); };
    return !path.empty() && std::ranges::any_of(trusted_, leads_on) ? path + part : std::string();
  }

  Value list(const Json& json, const std::string& path, bool is_trusted) {
    const std::string inner = below(path, "[]");
    Values items;
    items.reserve(json.size());
    for (const Json& item : json) items.push_back(value(item, inner, is_trusted));
    return make_list(run_.budget, std::move(items));
  }

  Value dict(const Json& json, const std::string& path, bool is_trusted) {
    DictBuilder made(run_);
    for (const auto& [key, item] : json.items()) {
      made.set(text(key, is_trusted), value(item, below(path, "." + key), is_trusted));
    }
    return made.finish();
  }

  Run& run_;
  const std::vector<std::string>& trusted_;
};

}  // namespace

void set_variables(Interpreter& interpreter, const nlohmann::ordered_json& variables,
                   const std::vector<std::string>& trusted) {
  if (!variables.is_object()) {
    throw Error("the variables of a chat template are no object").way_out("give an object with \"messages\"");
  }
  Converter converter(interpreter, trusted);
  for (const auto& [key, item] : variables.items()) interpreter.set_variable(key, converter.value(item, key, false));
}

}  // namespace nibble::jinja
