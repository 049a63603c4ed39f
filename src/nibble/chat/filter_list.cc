// Every filter that templates can use: one row each.
#include <array>

#include "nibble/chat/filters_order.h"
#include "nibble/chat/filters_sequence.h"
#include "nibble/chat/filters_text.h"
#include "nibble/chat/json_output.h"

namespace nibble::jinja {

std::span<const Native> filters() {
  static constexpr std::array<Native, 47> kFilters = {{
      {"abs", "", filter_abs},
      {"attr", "name", filter_attr},
      {"batch", "linecount fill_with?", filter_batch},
      {"capitalize", "", filter_capitalize},
      {"center", "width?", filter_center},
      {"count", "", filter_length},
      {"d", "default_value? boolean?", filter_default},
      {"default", "default_value? boolean?", filter_default},
      {"dictsort", "case_sensitive? by? reverse?", filter_dictsort},
      {"e", "", filter_escape},
      {"escape", "", filter_escape},
      {"first", "", filter_first},
      {"float", "default?", filter_float},
      {"forceescape", "", filter_forceescape},
      {"format", "*", filter_format},
      {"groupby", "attribute default? case_sensitive?", filter_groupby},
      {"indent", "width? first? blank?", filter_indent},
      {"int", "default? base?", filter_int},
      {"items", "", filter_items},
      {"join", "d? attribute?", filter_join},
      {"last", "", filter_last},
      {"length", "", filter_length},
      {"list", "", filter_list},
      {"lower", "", filter_lower},
      {"map", "*", filter_map},
      {"max", "case_sensitive? attribute?", filter_max},
      {"min", "case_sensitive? attribute?", filter_min},
      {"reject", "*", filter_reject},
      {"rejectattr", "*", filter_rejectattr},
      {"replace", "old new count?", filter_replace},
      {"reverse", "", filter_reverse},
      {"round", "precision? method?", filter_round},
      {"safe", "", filter_safe},
      {"select", "*", filter_select},
      {"selectattr", "*", filter_selectattr},
      {"slice", "slices fill_with?", filter_slice},
      {"sort", "reverse? case_sensitive? attribute?", filter_sort},
      {"string", "", filter_string},
      {"sum", "attribute? start?", filter_sum},
      {"title", "", filter_title},
      {"tojson", "ensure_ascii? indent? separators? sort_keys?", filter_tojson},
      {"trim", "chars?", filter_trim},
      {"truncate", "length? killwords? end? leeway?", filter_truncate},
      {"unique", "case_sensitive? attribute?", filter_unique},
      {"upper", "", filter_upper},
      {"urlencode", "", filter_urlencode},
      {"wordcount", "", filter_wordcount},
  }};
  return kFilters;
}

}  // namespace nibble::jinja
