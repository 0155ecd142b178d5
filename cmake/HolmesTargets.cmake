# Helpers that give every folder the same shape: one static library per src/<folder>, one test binary per tests/<folder>.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(HOLMES_CCACHE ccache)
if(HOLMES_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HOLMES_CCACHE})
endif()
find_program(HOLMES_MOLD mold)
if(HOLMES_MOLD AND NOT HOLMES_FUZZ)
  add_link_options(-fuse-ld=mold)
endif()

add_library(holmes_options INTERFACE)
target_compile_options(holmes_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers -Werror>
  # g++ 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651).
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>>:-Wthread-safety>)
target_include_directories(holmes_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR HOLMES_SANITIZE)
  target_compile_definitions(holmes_options INTERFACE HOLMES_DEBUG_CHECKS)
endif()
if(HOLMES_SANITIZE)
  add_compile_options("$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-fsanitize=${HOLMES_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  add_link_options(-fsanitize=${HOLMES_SANITIZE})
endif()

# holmes_library(NAME DEPS ...): static library holmes_NAME (alias holmes::NAME) from every .cc below src/NAME.
# DEPS name other folders (base, text, ...) or CMake targets.
function(holmes_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc" "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  # X.cu has X_none.cc for builds without CUDA.
  file(GLOB_RECURSE cuda CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cu" "${CMAKE_CURRENT_SOURCE_DIR}/*.cuh")
  if(HOLMES_CUDA_ENABLED AND cuda)
    list(FILTER sources EXCLUDE REGEX "_none\\.cc$")
    list(APPEND sources ${cuda})
  endif()
  add_library(holmes_${name} STATIC ${sources})
  add_library(holmes::${name} ALIAS holmes_${name})
  set_target_properties(holmes_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(holmes_${name} PUBLIC holmes_options)
  holmes_link(holmes_${name} PUBLIC ${ARG_DEPS})
  if(HOLMES_CUDA_ENABLED AND cuda)
    target_link_libraries(holmes_${name} PRIVATE CUDA::cudart_static)
  endif()
endfunction()

function(holmes_link target scope)
  foreach(dep ${ARGN})
    if(TARGET holmes_${dep} OR IS_DIRECTORY "${CMAKE_SOURCE_DIR}/src/${dep}")
      target_link_libraries(${target} ${scope} holmes_${dep})
    else()
      target_link_libraries(${target} ${scope} ${dep})
    endif()
  endforeach()
endfunction()

# holmes_tests(NAME DEPS ...): one GoogleTest binary NAME_test from every *_test.cc in the folder.
function(holmes_tests name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc" "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  add_executable(${name}_test ${sources})
  target_include_directories(${name}_test PRIVATE "${CMAKE_SOURCE_DIR}/tests")
  target_compile_definitions(${name}_test PRIVATE
    HOLMES_SOURCE_DIR="${CMAKE_SOURCE_DIR}" HOLMES_TEST_DATA_DIR="${CMAKE_CURRENT_SOURCE_DIR}/data")
  holmes_link(${name}_test PRIVATE ${name} ${ARG_DEPS} GTest::gmock_main)
  add_test(NAME ${name} COMMAND ${name}_test)
endfunction()

# holmes_fuzzer(NAME DEPS ...): fuzz/NAME_fuzz.cc as a libFuzzer program.
function(holmes_fuzzer name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name}_fuzz ${name}_fuzz.cc)
  target_compile_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  holmes_link(${name}_fuzz PRIVATE ${ARG_DEPS})
endfunction()
