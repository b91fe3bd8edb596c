# Run by `cmake -P`: makes the header HEADER, which gives the text of the file PTX as NAMESPACE::kPtx.
file(READ ${PTX} text)
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT [[
// Made from the .ptx of this name by cmake/embed_ptx.cmake. Do not edit.
#pragma once

namespace @NAMESPACE@ {
inline constexpr char kPtx[] = R"PTX(@text@)PTX";
}  // namespace @NAMESPACE@
]])
