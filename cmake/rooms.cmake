# One include root: `#include "base/result.h"` names the room. Generated headers live under the same names.
include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)

# cuplex_room(NAME SOURCES a.cc b.cc LIBS other ...): the static library cuplex_NAME.
function(cuplex_room NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  if(ARG_SOURCES)
    add_library(cuplex_${NAME} STATIC ${ARG_SOURCES})
    target_link_libraries(cuplex_${NAME} PUBLIC ${ARG_LIBS})
  else()
    add_library(cuplex_${NAME} INTERFACE)
    target_link_libraries(cuplex_${NAME} INTERFACE ${ARG_LIBS})
  endif()
endfunction()

# cuplex_test(NAME SOURCES x_test.cc LIBS cuplex_x ...): a GoogleTest program and its CTest entry.
# GoogleTest's headers cost more than a second a file, so all tests share one precompiled header.
function(cuplex_test NAME)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT TARGET cuplex_test_headers)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gen/test_headers.cc CONTENT "int main() {}\n")
    add_executable(cuplex_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/gen/test_headers.cc)
    target_link_libraries(cuplex_test_headers PRIVATE cuplex_base GTest::gtest GTest::gmock)
    target_precompile_headers(cuplex_test_headers PRIVATE
      <cstdint> <functional> <map> <memory> <string> <thread> <vector> <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBS} cuplex_base GTest::gtest GTest::gmock GTest::gtest_main)
  target_precompile_headers(${NAME} REUSE_FROM cuplex_test_headers)
  add_test(NAME ${NAME} COMMAND ${NAME})
  # A test must not run what an earlier build compiled, nor leave anything at home.
  set_tests_properties(${NAME} PROPERTIES TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "SOFTCUDA_CACHE_DIR=off;${ARG_ENVIRONMENT}")
endfunction()

# cuplex_fuzz(NAME SOURCES x_fuzz.cc the.cc code.cc SEEDS folder [DICT file] LIBS ...): a libFuzzer program, and a CTest
# that runs it for five seconds. libFuzzer needs coverage in the code it drives, so that code is compiled once more here.
include(CheckCXXSourceCompiles)
function(cuplex_fuzz NAME)
  cmake_parse_arguments(ARG "" "SEEDS;DICT" "SOURCES;LIBS" ${ARGN})
  set(CMAKE_REQUIRED_FLAGS "-fsanitize=fuzzer,address")
  check_cxx_source_compiles("extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }"
                            CUPLEX_HAS_LIBFUZZER)
  if(NOT CUPLEX_HAS_LIBFUZZER OR CUPLEX_SANITIZE MATCHES thread)
    return()
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_compile_options(${NAME} PRIVATE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined)
  target_link_options(${NAME} PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBS})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${NAME}_corpus)  # what a run finds new
  set(dictionary)
  if(ARG_DICT)
    set(dictionary -dict=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_DICT})
  endif()
  add_test(NAME ${NAME} COMMAND ${NAME} -max_total_time=5 -max_len=8192 -timeout=10 -rss_limit_mb=2048 -verbosity=0
           ${dictionary} ${CMAKE_CURRENT_BINARY_DIR}/${NAME}_corpus ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SEEDS})
  set_tests_properties(${NAME} PROPERTIES TIMEOUT 60)
endfunction()
