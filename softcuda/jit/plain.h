// What PTX allows and compilers do not write, said in words that the emitter takes. Pure; any thread.
//
//   .reg .v2 .u32 a;  ld.v2.u32 a, [x];  a.y      two registers, {a0, a1}, a1; also as parameters of
//   functions mov.v2.u32 {a, b}, {b, a};                    one mov a register, over others in between
//   .global or .const inside a function           a variable of the module, under a name that no PTX can
//   write
#pragma once

#include <memory>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::softcuda {

/// `module` itself where it has none of these, which is the rule. Errors: a part that a vector register does
/// not have.
Result<std::shared_ptr<const ptx::Module>> MakePlain(std::shared_ptr<const ptx::Module> module);

}  // namespace cuplex::softcuda
