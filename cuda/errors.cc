#include "cuda/errors.h"

#include <algorithm>
#include <iterator>

namespace cuplex {
namespace {

struct Row {
  CUresult code;
  const char* name;
  const char* text;
};

#define CUPLEX_CODE(name) name, #name

// Ascending by code.
constexpr Row kRows[] = {
    {CUPLEX_CODE(CUDA_SUCCESS), "no error"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_VALUE), "an argument is outside the values this call accepts"},
    {CUPLEX_CODE(CUDA_ERROR_OUT_OF_MEMORY), "not enough memory is left for what was asked"},
    {CUPLEX_CODE(CUDA_ERROR_NOT_INITIALIZED), "the driver was not started: cuInit must come first"},
    {CUPLEX_CODE(CUDA_ERROR_DEINITIALIZED), "the driver is shutting down"},
    {CUPLEX_CODE(CUDA_ERROR_PROFILER_DISABLED), "profiling is off in this run"},
    {CUPLEX_CODE(CUDA_ERROR_PROFILER_NOT_INITIALIZED), "profiling was never set up"},
    {CUPLEX_CODE(CUDA_ERROR_PROFILER_ALREADY_STARTED), "profiling already runs"},
    {CUPLEX_CODE(CUDA_ERROR_PROFILER_ALREADY_STOPPED), "profiling does not run"},
    {CUPLEX_CODE(CUDA_ERROR_STUB_LIBRARY), "the library that was loaded is a stub for linking, not a driver"},
    {CUPLEX_CODE(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER), "the call exists only in a newer driver"},
    {CUPLEX_CODE(CUDA_ERROR_DEVICE_UNAVAILABLE), "the device cannot be used at the moment"},
    {CUPLEX_CODE(CUDA_ERROR_NO_DEVICE), "no device was found that can run CUDA"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_DEVICE), "there is no device of that number, or it cannot do this"},
    {CUPLEX_CODE(CUDA_ERROR_DEVICE_NOT_LICENSED), "the device has no licence for this"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_IMAGE), "the bytes are no module image"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_CONTEXT), "no context is current, or the context is not a live one"},
    {CUPLEX_CODE(CUDA_ERROR_CONTEXT_ALREADY_CURRENT), "the context is already current"},
    {CUPLEX_CODE(CUDA_ERROR_MAP_FAILED), "mapping the resource failed"},
    {CUPLEX_CODE(CUDA_ERROR_UNMAP_FAILED), "unmapping the resource failed"},
    {CUPLEX_CODE(CUDA_ERROR_ARRAY_IS_MAPPED), "the array is mapped and cannot be destroyed"},
    {CUPLEX_CODE(CUDA_ERROR_ALREADY_MAPPED), "the resource is mapped already"},
    {CUPLEX_CODE(CUDA_ERROR_NO_BINARY_FOR_GPU), "the image holds no code that this device can run"},
    {CUPLEX_CODE(CUDA_ERROR_ALREADY_ACQUIRED), "the resource is acquired already"},
    {CUPLEX_CODE(CUDA_ERROR_NOT_MAPPED), "the resource is not mapped"},
    {CUPLEX_CODE(CUDA_ERROR_NOT_MAPPED_AS_ARRAY), "the resource is not mapped as an array"},
    {CUPLEX_CODE(CUDA_ERROR_NOT_MAPPED_AS_POINTER), "the resource is not mapped as a pointer"},
    {CUPLEX_CODE(CUDA_ERROR_ECC_UNCORRECTABLE), "device memory has an error that could not be corrected"},
    {CUPLEX_CODE(CUDA_ERROR_UNSUPPORTED_LIMIT), "the device has no such limit"},
    {CUPLEX_CODE(CUDA_ERROR_CONTEXT_ALREADY_IN_USE), "another thread holds the context"},
    {CUPLEX_CODE(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED), "the two devices cannot reach each other's memory"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_PTX), "the PTX did not compile"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT), "the graphics context cannot be used"},
    {CUPLEX_CODE(CUDA_ERROR_NVLINK_UNCORRECTABLE), "a device link has an error that could not be corrected"},
    {CUPLEX_CODE(CUDA_ERROR_JIT_COMPILER_NOT_FOUND), "the PTX compiler was not found"},
    {CUPLEX_CODE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION), "the PTX is of a kind that this driver cannot compile"},
    {CUPLEX_CODE(CUDA_ERROR_JIT_COMPILATION_DISABLED), "compiling PTX is switched off"},
    {CUPLEX_CODE(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY), "the device cannot be partitioned in this way"},
    {CUPLEX_CODE(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC),
     "the code synchronises on the device in a way that is gone"},
    {CUPLEX_CODE(CUDA_ERROR_CONTAINED), "a fault was contained; the process must end to clear it"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_SOURCE), "the device source is not valid"},
    {CUPLEX_CODE(CUDA_ERROR_FILE_NOT_FOUND), "the file was not found"},
    {CUPLEX_CODE(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND),
     "a shared library lacks a symbol that is needed"},
    {CUPLEX_CODE(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED), "a shared library could not be started"},
    {CUPLEX_CODE(CUDA_ERROR_OPERATING_SYSTEM), "the operating system refused"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_HANDLE), "the handle names no live object of this kind here"},
    {CUPLEX_CODE(CUDA_ERROR_ILLEGAL_STATE), "the object is not in a state that allows this"},
    {CUPLEX_CODE(CUDA_ERROR_LOSSY_QUERY), "the answer would lose information"},
    {CUPLEX_CODE(CUDA_ERROR_NOT_FOUND), "nothing of that name was found"},
    {CUPLEX_CODE(CUDA_ERROR_NOT_READY), "work that was submitted earlier is not done yet"},
    {CUPLEX_CODE(CUDA_ERROR_ILLEGAL_ADDRESS), "a kernel touched memory that it may not touch"},
    {CUPLEX_CODE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
     "the launch needs more of the device than one block can have"},
    {CUPLEX_CODE(CUDA_ERROR_LAUNCH_TIMEOUT), "the kernel ran longer than the device allows"},
    {CUPLEX_CODE(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING), "the kernel uses another texturing mode"},
    {CUPLEX_CODE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED), "access to that peer is enabled already"},
    {CUPLEX_CODE(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED), "access to that peer is not enabled"},
    {CUPLEX_CODE(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE), "the primary context is in use already"},
    {CUPLEX_CODE(CUDA_ERROR_CONTEXT_IS_DESTROYED), "the current context was destroyed"},
    {CUPLEX_CODE(CUDA_ERROR_ASSERT), "an assertion failed in a kernel"},
    {CUPLEX_CODE(CUDA_ERROR_TOO_MANY_PEERS), "no more peers can be enabled"},
    {CUPLEX_CODE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
     "some of that host memory is registered already"},
    {CUPLEX_CODE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED), "that host memory is not registered"},
    {CUPLEX_CODE(CUDA_ERROR_HARDWARE_STACK_ERROR), "a kernel overran or broke its call stack"},
    {CUPLEX_CODE(CUDA_ERROR_ILLEGAL_INSTRUCTION), "a kernel met an instruction that it may not run"},
    {CUPLEX_CODE(CUDA_ERROR_MISALIGNED_ADDRESS),
     "a kernel used an address that is not aligned for its access"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_ADDRESS_SPACE), "a kernel used an address of the wrong state space"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_PC), "a kernel jumped out of its code"},
    {CUPLEX_CODE(CUDA_ERROR_LAUNCH_FAILED), "a kernel died"},
    {CUPLEX_CODE(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
     "a cooperative grid has more blocks than can be on the device at once"},
    {CUPLEX_CODE(CUDA_ERROR_TENSOR_MEMORY_LEAK), "a kernel left tensor memory allocated"},
    {CUPLEX_CODE(CUDA_ERROR_NOT_PERMITTED), "this is not permitted"},
    {CUPLEX_CODE(CUDA_ERROR_NOT_SUPPORTED), "this is not supported here"},
    {CUPLEX_CODE(CUDA_ERROR_SYSTEM_NOT_READY), "a part of the system that CUDA needs has not started"},
    {CUPLEX_CODE(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH),
     "kernel driver and user driver are of different versions"},
    {CUPLEX_CODE(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE),
     "the device does not take the compatibility driver"},
    {CUPLEX_CODE(CUDA_ERROR_MPS_CONNECTION_FAILED), "the sharing daemon could not be reached"},
    {CUPLEX_CODE(CUDA_ERROR_MPS_RPC_FAILURE), "the sharing server or the way to it failed"},
    {CUPLEX_CODE(CUDA_ERROR_MPS_SERVER_NOT_READY), "the sharing server takes no new clients at the moment"},
    {CUPLEX_CODE(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED), "the sharing server has no room for another client"},
    {CUPLEX_CODE(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED), "the device has no room for another connection"},
    {CUPLEX_CODE(CUDA_ERROR_MPS_CLIENT_TERMINATED), "the sharing server ended this client"},
    {CUPLEX_CODE(CUDA_ERROR_CDP_NOT_SUPPORTED),
     "the module launches kernels from kernels, which is not supported"},
    {CUPLEX_CODE(CUDA_ERROR_CDP_VERSION_MISMATCH), "the module mixes versions of launching from kernels"},
    {CUPLEX_CODE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED), "this cannot be done while the stream is captured"},
    {CUPLEX_CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED), "an earlier error made the capture void"},
    {CUPLEX_CODE(CUDA_ERROR_STREAM_CAPTURE_MERGE), "this would join two captures that are separate"},
    {CUPLEX_CODE(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED), "the capture did not begin in this stream"},
    {CUPLEX_CODE(CUDA_ERROR_STREAM_CAPTURE_UNJOINED), "the capture has a branch that was not joined back"},
    {CUPLEX_CODE(CUDA_ERROR_STREAM_CAPTURE_ISOLATION), "a capture cannot depend on work outside it"},
    {CUPLEX_CODE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT), "the default stream would wait for a captured stream"},
    {CUPLEX_CODE(CUDA_ERROR_CAPTURED_EVENT), "the event was last recorded in a capture"},
    {CUPLEX_CODE(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD), "the capture belongs to another thread"},
    {CUPLEX_CODE(CUDA_ERROR_TIMEOUT), "the wait took longer than allowed"},
    {CUPLEX_CODE(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE), "the graph differs too much to be updated in place"},
    {CUPLEX_CODE(CUDA_ERROR_EXTERNAL_DEVICE), "a device outside CUDA failed"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_CLUSTER_SIZE), "the cluster does not suit the launch"},
    {CUPLEX_CODE(CUDA_ERROR_FUNCTION_NOT_LOADED), "the function has not been loaded"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_RESOURCE_TYPE), "the resource is of the wrong type"},
    {CUPLEX_CODE(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION),
     "the resources do not suffice or do not fit together"},
    {CUPLEX_CODE(CUDA_ERROR_KEY_ROTATION), "a key rotation came in between"},
    {CUPLEX_CODE(CUDA_ERROR_UNKNOWN), "something failed for which there is no code"},
};

#undef CUPLEX_CODE

static_assert(std::ranges::is_sorted(kRows, {}, &Row::code));

const Row* Find(CUresult code) {
  const Row* row = std::ranges::lower_bound(kRows, code, {}, &Row::code);
  return row != std::end(kRows) && row->code == code ? row : nullptr;
}

}  // namespace

const char* CuErrorName(CUresult code) {
  const Row* row = Find(code);
  return row ? row->name : nullptr;
}

const char* CuErrorText(CUresult code) {
  const Row* row = Find(code);
  return row ? row->text : nullptr;
}

}  // namespace cuplex
