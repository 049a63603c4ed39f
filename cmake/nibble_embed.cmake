# nibble_embed(MODULE FUNCTION FOLDER)
#
# Puts the JSON files of a folder into the program: a generated source that defines
# `std::span<const EmbeddedFile> nibble::FUNCTION()` (base/embedded_file.h), sorted by name.
function(nibble_embed MODULE FUNCTION FOLDER)
  file(GLOB files CONFIGURE_DEPENDS ${FOLDER}/*.json)
  list(SORT files)
  # Not beside the module's own objects, whose names it might share.
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${FUNCTION}.cc)
  set(texts "")
  set(rows "")
  set(index 0)
  foreach(path IN LISTS files)
    file(READ ${path} text)
    get_filename_component(name ${path} NAME_WLE)
    # An array and its size: to find the end of a long literal takes more steps than compilers allow a constant.
    string(APPEND texts "constexpr char kText${index}[] = R\"~~~(${text})~~~\";\n")
    string(APPEND rows "    {\"${name}\", {kText${index}, sizeof(kText${index}) - 1}},\n")
    math(EXPR index "${index} + 1")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endforeach()
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#include \"nibble/base/embedded_file.h\"

namespace nibble {
namespace {

${texts}
}  // namespace

std::span<const EmbeddedFile> ${FUNCTION}();

std::span<const EmbeddedFile> ${FUNCTION}() {
  static constexpr EmbeddedFile kFiles[] = {
${rows}  };
  return kFiles;
}

}  // namespace nibble
")
  # Longer than every compiler must take, and our two do.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
  target_sources(nibble_${MODULE} PRIVATE ${source})
endfunction()
