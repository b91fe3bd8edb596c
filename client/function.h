// Functions and kernels: what a program can launch. Any thread; Find takes no lock.
//
// A CUkernel may be passed wherever a CUfunction is taken, so both have handles of one table.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/object_table.h"
#include "cuda/driver_types.h"
#include "protocol/function_facts.h"

namespace cuplex::client {

class Session;
struct Caller;

struct Function {
  // of a function
  uint32_t context = 0;  // number
  Handle module = 0;
  FunctionFacts facts;
  std::vector<FunctionParameter> parameters;
  // of a kernel: where it comes from, and the functions it became, by context number; guarded by LibraryTable
  Handle library = 0;
  std::vector<std::pair<uint32_t, Handle>> functions;

  std::string name;

  bool is_kernel() const { return library != 0; }
};

class FunctionTable {
 public:
  Function* Find(Handle h) { return table_.Find(h); }
  Handle Insert(Function f) { return table_.Insert(std::move(f)); }
  void Erase(Handle h) { table_.Erase(h); }
  /// Drops the functions of an ended context.
  void Forget(uint32_t context);
  void ForgetModule(Handle module);

 private:
  ObjectTable<Function> table_;
};

/// The function that `f` names in the caller's context; a kernel's module is loaded there first where it is
/// not yet. CUDA_ERROR_INVALID_HANDLE where it is neither.
CUresult ResolveFunction(const Caller& caller, CUfunction f, Function** out, Handle* handle);

/// What the client knows by itself. CUDA_ERROR_INVALID_VALUE for no such attribute or parameter.
CUresult FunctionAttribute(const FunctionFacts& facts, CUfunction_attribute attribute, int* out);
CUresult FunctionParamInfo(const Function& f, size_t index, size_t* offset, size_t* size);

/// Asks the server to set an attribute, and remembers it.
CUresult SetFunctionAttribute(Session& session, Function& f, Handle h, CUfunction_attribute attribute,
                              int value);

}  // namespace cuplex::client
