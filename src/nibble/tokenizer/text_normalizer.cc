#include "nibble/tokenizer/text_normalizer.h"

#include <unicode/unorm2.h>
#include <unicode/uset.h>

#include <algorithm>
#include <array>

#include "nibble/base/error.h"
#include "nibble/tokenizer/utf8.h"

namespace nibble {
namespace {

using Instance = const UNormalizer2* (*)(UErrorCode*);

struct Form {
  std::string_view name;
  Instance instance;
};

constexpr std::array kForms{
    Form{"NFC", unorm2_getNFCInstance},
    Form{"NFD", unorm2_getNFDInstance},
    Form{"NFKC", unorm2_getNFKCInstance},
    Form{"NFKD", unorm2_getNFKDInstance},
};

Error cannot(UErrorCode code) {
  Error error("Unicode normalization fails");
  error.value("reason", u_errorName(code)).way_out("give the text in smaller pieces");
  return error;
}

// The library's tables are those of Unicode 9: what was assigned later stays as it is and is no mark to be moved. ICU's
// are younger, so they are held to the same characters. The instances live as long as the program.
const UNormalizer2* as_of_unicode_9(const Form& form) {
  UErrorCode code = U_ZERO_ERROR;
  static const USet* const kKnown = [&] {
    const std::u16string_view pattern = u"[:age=9.0:]";
    USet* set = uset_openPattern(pattern.data(), static_cast<int32_t>(pattern.size()), &code);
    if (U_FAILURE(code)) throw cannot(code);
    uset_freeze(set);
    return set;
  }();
  const UNormalizer2* instance = unorm2_openFiltered(form.instance(&code), kKnown, &code);
  if (U_FAILURE(code)) throw cannot(code);
  return instance;
}

std::u16string normalized(const UNormalizer2* form, std::u16string text) {
  UErrorCode code = U_ZERO_ERROR;
  const auto units = static_cast<int32_t>(text.size());
  if (std::all_of(text.begin(), text.end(), [](char16_t unit) { return unit < 0x80; })) return text;
  if (unorm2_spanQuickCheckYes(form, text.data(), units, &code) == units && U_SUCCESS(code)) return text;
  std::u16string out(text.size() + text.size() / 4 + 16, u'\0');
  for (int tries = 0; tries < 2; ++tries) {
    code = U_ZERO_ERROR;
    const int32_t needed =
        unorm2_normalize(form, text.data(), units, out.data(), static_cast<int32_t>(out.size()), &code);
    out.resize(static_cast<size_t>(needed));
    if (code != U_BUFFER_OVERFLOW_ERROR) break;
  }
  if (U_FAILURE(code)) throw cannot(code);
  return out;
}

}  // namespace

bool TextNormalizer::add(std::string_view name) {
  static const std::array kInstances{as_of_unicode_9(kForms[0]), as_of_unicode_9(kForms[1]), as_of_unicode_9(kForms[2]),
                                     as_of_unicode_9(kForms[3])};
  for (size_t i = 0; i < kInstances.size(); ++i) {
    if (kForms[i].name != name) continue;
    forms_.push_back(kInstances[i]);
    return true;
  }
  return false;
}

std::u16string TextNormalizer::apply(std::u16string text) const {
  for (const void* form : forms_) text = normalized(static_cast<const UNormalizer2*>(form), std::move(text));
  return text;
}

std::string TextNormalizer::apply_utf8(const std::string& text) const {
  if (changes_nothing()) return text;
  std::string out;
  append_utf8(apply(utf16_of(text)), &out);
  return out;
}

}  // namespace nibble
