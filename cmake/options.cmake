set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")  # asserts stay on: a server that holds memory limits should stop, not guess

option(CUPLEX_WERROR "Treat warnings as errors" ON)
set(CUPLEX_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wnon-virtual-dtor -Woverloaded-virtual)
if(CUPLEX_WERROR)
  add_compile_options(-Werror)
endif()
if(CUPLEX_SANITIZE)
  add_compile_options(-fsanitize=${CUPLEX_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CUPLEX_SANITIZE})
endif()

# Paths in debug information and __FILE__ start at the source folder, so that clones in different folders build the
# same bytes and share one cache.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)

find_program(CCACHE ccache)
if(CCACHE)
  # The sloppiness is what ccache asks for before it caches anything that uses a precompiled header.
  set(CUPLEX_CACHED ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CUPLEX_CACHED})
  set(CMAKE_C_COMPILER_LAUNCHER ${CUPLEX_CACHED})
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
find_program(LLD ld.lld-19)
if(LLD AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_link_options(-fuse-ld=lld)
endif()

# Sanitizers own much of the address space; see docs/design.md, "Address windows".
if(CUPLEX_SANITIZE MATCHES thread)
  set(CUPLEX_DEFAULT_WINDOW_BASE 0x8000000000)
else()
  set(CUPLEX_DEFAULT_WINDOW_BASE 0x200000000000)
endif()
