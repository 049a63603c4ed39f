# nibble_torch: libtorch as the module `train` uses it, Debian's by default. NIBBLE_TORCH names another one: the folder
# `torch` of PyPI's wheel, or an unpacked libtorch (both from 2.6 on, whose C++ library names are the compiler's).
#
# Not find_package(Torch): Debian's TorchConfig.cmake looks for headers in /usr/lib/include, and a CUDA wheel's wants the
# whole CUDA toolkit where only its libraries are needed.
set(NIBBLE_TORCH "" CACHE PATH "libtorch to train with (a folder with include/ and lib/); empty: the system's")

# Wheels carry headers of libraries that they were built with, fmt's among them: of another version than the library that
# the program links. A folder of links names torch's own headers alone.
function(nibble_torch_headers FOLDER INCLUDE)
  foreach(name IN ITEMS torch ATen c10 caffe2)
    if(EXISTS ${INCLUDE}/${name})
      file(MAKE_DIRECTORY ${FOLDER})
      file(CREATE_LINK ${INCLUDE}/${name} ${FOLDER}/${name} SYMBOLIC)
    endif()
  endforeach()
endfunction()

function(nibble_find_torch)
  set(hints)
  if(NIBBLE_TORCH)
    set(hints HINTS ${NIBBLE_TORCH} NO_DEFAULT_PATH)
  endif()
  find_path(NIBBLE_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h PATH_SUFFIXES include ${hints})
  foreach(name IN ITEMS torch torch_cpu c10)
    find_library(NIBBLE_TORCH_LIB_${name} ${name} PATH_SUFFIXES lib ${hints})
    if(NOT NIBBLE_TORCH_INCLUDE OR NOT NIBBLE_TORCH_LIB_${name})
      message(FATAL_ERROR "libtorch is missing (lib${name}, torch/torch.h): run tools/setup.sh, name one with "
                          "-DNIBBLE_TORCH=FOLDER, or build without `nibble train`: -DNIBBLE_TRAIN=OFF")
    endif()
    list(APPEND libraries ${NIBBLE_TORCH_LIB_${name}})
  endforeach()
  # Nothing of ours names a symbol of these: they register themselves once they are loaded.
  foreach(name IN ITEMS torch_cuda c10_cuda)
    find_library(NIBBLE_TORCH_LIB_${name} ${name} PATH_SUFFIXES lib ${hints})
    if(NIBBLE_TORCH_LIB_${name})
      list(APPEND libraries ${NIBBLE_TORCH_LIB_${name}})
    endif()
  endforeach()
  add_library(nibble_torch INTERFACE)
  target_link_libraries(nibble_torch INTERFACE -Wl,--push-state,--no-as-needed ${libraries} -Wl,--pop-state)
  set(include ${NIBBLE_TORCH_INCLUDE})
  if(NIBBLE_TORCH)
    set(include ${CMAKE_BINARY_DIR}/torch_headers)
    nibble_torch_headers(${include} ${NIBBLE_TORCH_INCLUDE})
  endif()
  # SYSTEM: their headers do not pass our warnings.
  target_include_directories(nibble_torch SYSTEM INTERFACE ${include} ${include}/torch/csrc/api/include)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(nibble_torch INTERFACE
                           "SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/torch_with_clang.h")
  endif()
endfunction()
