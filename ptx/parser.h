// Parse: PTX text -> Module. Any thread; no global state.
//
// The text may be hostile: nesting, registers and sizes are bounded, and every error is a sentence with
// line:column, what was found and what was expected. Debug directives (.loc, .file, .section, @@DWARF, and
// `debug` after .target) are skipped and are not in the tree.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::ptx {

/// `text` need not end in NUL; NUL bytes at its end are ignored. Fails with Blame::kCaller.
Result<Module> Parse(std::string_view text);

}  // namespace cuplex::ptx
