// Link: several modules become the text of one, as a linker does it with object files. Pure; any thread.
//
// What is .visible, .weak or .common, and every kernel, is known in all modules by its name; the rest is its
// module's own and gets another name where two modules have the same.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::ptx {

struct LinkInput {
  std::string name;  // for sentences
  Module module;
};

/// PTX text that Parse() takes. `provided` says which functions need no definition, since whoever runs the
/// text has them. Errors name a symbol that is defined twice or nowhere, with the inputs it stands in.
Result<std::string> Link(std::vector<LinkInput> inputs,
                         const std::function<bool(std::string_view)>& provided);

}  // namespace cuplex::ptx
