# nibble_embed(MODULE FUNCTION FOLDER)
#
# Puts the JSON files of a folder into the program: a generated source that defines
# `std::span<const EmbeddedFile> nibble::FUNCTION()` (base/embedded_file.h), sorted by name.
function(nibble_embed MODULE FUNCTION FOLDER)
  file(GLOB files CONFIGURE_DEPENDS ${FOLDER}/*.json)
  list(SORT files)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${FUNCTION}.cc)
  set(rows "")
  foreach(path IN LISTS files)
    file(READ ${path} text)
    get_filename_component(name ${path} NAME_WLE)
    string(APPEND rows "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endforeach()
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#include \"nibble/base/embedded_file.h\"

namespace nibble {

std::span<const EmbeddedFile> ${FUNCTION}();

std::span<const EmbeddedFile> ${FUNCTION}() {
  static constexpr EmbeddedFile kFiles[] = {
${rows}  };
  return kFiles;
}

}  // namespace nibble
")
  target_sources(nibble_${MODULE} PRIVATE ${source})
endfunction()
