// The runtime's error codes: their numbers, names and sentences, and what a driver's answer becomes. Any
// thread.
#pragma once

#include "cuda/driver_types.h"

// X(name, number, sentence). The numbers are CUDA's; where a driver's result has the same number it means the
// same.
#define CUPLEX_RUNTIME_ERRORS(X)                                                                             \
  X(cudaSuccess, 0, "no error")                                                                              \
  X(cudaErrorInvalidValue, 1, "invalid argument")                                                            \
  X(cudaErrorMemoryAllocation, 2, "out of memory")                                                           \
  X(cudaErrorInitializationError, 3, "CUDA could not be initialised in this process")                        \
  X(cudaErrorCudartUnloading, 4, "the process is exiting and CUDA has shut down")                            \
  X(cudaErrorProfilerDisabled, 5, "no profiler is running here")                                             \
  X(cudaErrorProfilerNotInitialized, 6, "the profiler was not initialised (an error of old versions)")       \
  X(cudaErrorProfilerAlreadyStarted, 7, "the profiler already runs (an error of old versions)")              \
  X(cudaErrorProfilerAlreadyStopped, 8, "the profiler is already stopped (an error of old versions)")        \
  X(cudaErrorInvalidConfiguration, 9, "the grid or block is empty, or larger than the device takes")         \
  X(cudaErrorInvalidPitchValue, 12, "a pitch is smaller than its row, or larger than the device takes")      \
  X(cudaErrorInvalidSymbol, 13, "no such device symbol")                                                     \
  X(cudaErrorInvalidHostPointer, 16, "not a host pointer (an error of old versions)")                        \
  X(cudaErrorInvalidDevicePointer, 17, "not a device pointer (an error of old versions)")                    \
  X(cudaErrorInvalidTexture, 18, "invalid texture")                                                          \
  X(cudaErrorInvalidTextureBinding, 19, "invalid texture binding")                                           \
  X(cudaErrorInvalidChannelDescriptor, 20, "invalid channel descriptor")                                     \
  X(cudaErrorInvalidMemcpyDirection, 21, "a copy's direction is none of the five kinds")                     \
  X(cudaErrorAddressOfConstant, 22, "the address of a constant was taken (an error of old versions)")        \
  X(cudaErrorTextureFetchFailed, 23, "a texture fetch failed (an error of old versions)")                    \
  X(cudaErrorTextureNotBound, 24, "the texture is not bound (an error of old versions)")                     \
  X(cudaErrorSynchronizationError, 25, "a synchronisation failed (an error of old versions)")                \
  X(cudaErrorInvalidFilterSetting, 26, "linear filtering of a texture that does not allow it")               \
  X(cudaErrorInvalidNormSetting, 27, "normalised reading of a texture that does not allow it")               \
  X(cudaErrorMixedDeviceExecution, 28, "device and emulated code were mixed (an error of old versions)")     \
  X(cudaErrorNotYetImplemented, 31, "not carried by this version (an error of old versions)")                \
  X(cudaErrorMemoryValueTooLarge, 32, "a memory size is too large (an error of old versions)")               \
  X(cudaErrorStubLibrary, 34, "the CUDA driver found is the stub that programs link with")                   \
  X(cudaErrorInsufficientDriver, 35, "no CUDA driver was found, or it is older than this runtime")           \
  X(cudaErrorCallRequiresNewerDriver, 36, "this call needs a newer CUDA driver")                             \
  X(cudaErrorInvalidSurface, 37, "invalid surface")                                                          \
  X(cudaErrorDuplicateVariableName, 43, "two device variables of this program have one name")                \
  X(cudaErrorDuplicateTextureName, 44, "two textures of this program have one name")                         \
  X(cudaErrorDuplicateSurfaceName, 45, "two surfaces of this program have one name")                         \
  X(cudaErrorDevicesUnavailable, 46, "every device is busy or unavailable")                                  \
  X(cudaErrorIncompatibleDriverContext, 49, "the current context cannot be used with the runtime")           \
  X(cudaErrorMissingConfiguration, 52, "a kernel was called without its launch configuration")               \
  X(cudaErrorPriorLaunchFailure, 53, "an earlier launch failed (an error of old versions)")                  \
  X(cudaErrorLaunchMaxDepthExceeded, 65, "a device-side launch is nested too deeply")                        \
  X(cudaErrorLaunchFileScopedTex, 66, "a kernel launched from the device uses a file-scoped texture")        \
  X(cudaErrorLaunchFileScopedSurf, 67, "a kernel launched from the device uses a file-scoped surface")       \
  X(cudaErrorSyncDepthExceeded, 68, "a device-side synchronisation is nested too deeply")                    \
  X(cudaErrorLaunchPendingCountExceeded, 69, "too many device-side launches are pending")                    \
  X(cudaErrorInvalidDeviceFunction, 98,                                                                      \
    "the function is no kernel of this program, or not one for this device")                                 \
  X(cudaErrorNoDevice, 100, "no CUDA device was found")                                                      \
  X(cudaErrorInvalidDevice, 101, "no device has this number")                                                \
  X(cudaErrorDeviceNotLicensed, 102, "the device has no licence for this use")                               \
  X(cudaErrorSoftwareValidityNotEstablished, 103, "the driver could not verify itself")                      \
  X(cudaErrorStartupFailure, 127, "the CUDA runtime could not start")                                        \
  X(cudaErrorInvalidKernelImage, 200, "the device code is damaged or no device code")                        \
  X(cudaErrorDeviceUninitialized, 201, "no context is current, or it is not usable")                         \
  X(cudaErrorMapBufferObjectFailed, 205, "the resource could not be mapped")                                 \
  X(cudaErrorUnmapBufferObjectFailed, 206, "the resource could not be unmapped")                             \
  X(cudaErrorArrayIsMapped, 207, "the array is mapped and cannot be destroyed")                              \
  X(cudaErrorAlreadyMapped, 208, "the resource is already mapped")                                           \
  X(cudaErrorNoKernelImageForDevice, 209, "the program holds no device code that this device can run")       \
  X(cudaErrorAlreadyAcquired, 210, "the resource is already acquired")                                       \
  X(cudaErrorNotMapped, 211, "the resource is not mapped")                                                   \
  X(cudaErrorNotMappedAsArray, 212, "the resource is not mapped as an array")                                \
  X(cudaErrorNotMappedAsPointer, 213, "the resource is not mapped as a pointer")                             \
  X(cudaErrorECCUncorrectable, 214, "the device found a memory error it could not correct")                  \
  X(cudaErrorUnsupportedLimit, 215, "the device has no such limit")                                          \
  X(cudaErrorDeviceAlreadyInUse, 216, "another thread uses the device exclusively")                          \
  X(cudaErrorPeerAccessUnsupported, 217, "these two devices cannot reach each other's memory")               \
  X(cudaErrorInvalidPtx, 218, "the program's PTX could not be compiled")                                     \
  X(cudaErrorInvalidGraphicsContext, 219, "invalid OpenGL or DirectX context")                               \
  X(cudaErrorNvlinkUncorrectable, 220, "an NVLink error could not be corrected")                             \
  X(cudaErrorJitCompilerNotFound, 221, "the PTX compiler library was not found")                             \
  X(cudaErrorUnsupportedPtxVersion, 222, "the program's PTX is of a newer version than the driver knows")    \
  X(cudaErrorJitCompilationDisabled, 223, "compiling PTX is switched off")                                   \
  X(cudaErrorUnsupportedExecAffinity, 224, "the device does not support this execution affinity")            \
  X(cudaErrorUnsupportedDevSideSync, 225,                                                                    \
    "the program's PTX synchronises on the device in a way not supported")                                   \
  X(cudaErrorContained, 226, "an error was contained to this process, which must be restarted")              \
  X(cudaErrorInvalidSource, 300, "the device code's source is invalid")                                      \
  X(cudaErrorFileNotFound, 301, "file not found")                                                            \
  X(cudaErrorSharedObjectSymbolNotFound, 302, "a shared library lacks a symbol")                             \
  X(cudaErrorSharedObjectInitFailed, 303, "a shared library could not be initialised")                       \
  X(cudaErrorOperatingSystem, 304, "a call to the operating system failed")                                  \
  X(cudaErrorInvalidResourceHandle, 400, "invalid handle")                                                   \
  X(cudaErrorIllegalState, 401, "the resource is not in the state this call needs")                          \
  X(cudaErrorLossyQuery, 402, "the answer would have lost part of what was asked for")                       \
  X(cudaErrorSymbolNotFound, 500, "the name was not found")                                                  \
  X(cudaErrorNotReady, 600, "the work has not finished yet")                                                 \
  X(cudaErrorIllegalAddress, 700,                                                                            \
    "a kernel used an address outside its memory; the process must be restarted")                            \
  X(cudaErrorLaunchOutOfResources, 701, "the launch needs more registers or other resources than there are") \
  X(cudaErrorLaunchTimeout, 702, "a kernel ran longer than it may; the process must be restarted")           \
  X(cudaErrorLaunchIncompatibleTexturing, 703, "a kernel's texturing mode does not fit")                     \
  X(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                                \
  X(cudaErrorPeerAccessNotEnabled, 705, "peer access is not enabled")                                        \
  X(cudaErrorSetOnActiveProcess, 708, "this can only be set before the device is first used")                \
  X(cudaErrorContextIsDestroyed, 709, "the current context has been destroyed")                              \
  X(cudaErrorAssert, 710, "an assertion on the device failed; the process must be restarted")                \
  X(cudaErrorTooManyPeers, 711, "the device has no room for another peer")                                   \
  X(cudaErrorHostMemoryAlreadyRegistered, 712, "part of this memory is already registered")                  \
  X(cudaErrorHostMemoryNotRegistered, 713, "this memory is not registered")                                  \
  X(cudaErrorHardwareStackError, 714,                                                                        \
    "a kernel's stack was damaged or overflowed; the process must be restarted")                             \
  X(cudaErrorIllegalInstruction, 715, "a kernel met an illegal instruction; the process must be restarted")  \
  X(cudaErrorMisalignedAddress, 716, "a kernel used a misaligned address; the process must be restarted")    \
  X(cudaErrorInvalidAddressSpace, 717,                                                                       \
    "a kernel used an address of the wrong space; the process must be restarted")                            \
  X(cudaErrorInvalidPc, 718, "a kernel's program counter left its code; the process must be restarted")      \
  X(cudaErrorLaunchFailure, 719, "a kernel failed while it ran; the process must be restarted")              \
  X(cudaErrorCooperativeLaunchTooLarge, 720,                                                                 \
    "a cooperative grid is larger than what the device runs at once")                                        \
  X(cudaErrorTensorMemoryLeak, 721, "a kernel left tensor memory allocated; the process must be restarted")  \
  X(cudaErrorNotPermitted, 800, "not permitted")                                                             \
  X(cudaErrorNotSupported, 801, "not supported by this runtime, driver or device")                           \
  X(cudaErrorSystemNotReady, 802, "the system's CUDA service is not ready")                                  \
  X(cudaErrorSystemDriverMismatch, 803, "the driver's parts are of different versions")                      \
  X(cudaErrorCompatNotSupportedOnDevice, 804, "compatibility mode does not work on this device")             \
  X(cudaErrorMpsConnectionFailed, 805, "no connection to the MPS server")                                    \
  X(cudaErrorMpsRpcFailure, 806, "a call to the MPS server failed")                                          \
  X(cudaErrorMpsServerNotReady, 807, "the MPS server takes no clients at the moment")                        \
  X(cudaErrorMpsMaxClientsReached, 808, "the MPS server has as many clients as it takes")                    \
  X(cudaErrorMpsMaxConnectionsReached, 809, "the MPS server has as many connections as it takes")            \
  X(cudaErrorMpsClientTerminated, 810, "the MPS server ended this client")                                   \
  X(cudaErrorCdpNotSupported, 811, "a kernel launches kernels, which is not supported here")                 \
  X(cudaErrorCdpVersionMismatch, 812, "two versions of device-side launching were mixed")                    \
  X(cudaErrorStreamCaptureUnsupported, 900, "not possible while a stream is being captured")                 \
  X(cudaErrorStreamCaptureInvalidated, 901, "an earlier error ended the capture")                            \
  X(cudaErrorStreamCaptureMerge, 902, "this would merge two captures")                                       \
  X(cudaErrorStreamCaptureUnmatched, 903, "the capture did not begin in this stream")                        \
  X(cudaErrorStreamCaptureUnjoined, 904, "the capture forked to a stream that did not join again")           \
  X(cudaErrorStreamCaptureIsolation, 905, "the capture would depend on work outside it")                     \
  X(cudaErrorStreamCaptureImplicit, 906, "the default stream would depend on a stream being captured")       \
  X(cudaErrorCapturedEvent, 907, "the event was last recorded in a captured stream")                         \
  X(cudaErrorStreamCaptureWrongThread, 908, "the capture began in another thread")                           \
  X(cudaErrorTimeout, 909, "the time given to wait has passed")                                              \
  X(cudaErrorGraphExecUpdateFailure, 910, "the graph differs too much from the instantiated one")            \
  X(cudaErrorExternalDevice, 911, "a device outside CUDA reported an error")                                 \
  X(cudaErrorInvalidClusterSize, 912, "the kernel cannot be launched with this cluster size")                \
  X(cudaErrorFunctionNotLoaded, 913, "the function is not loaded")                                           \
  X(cudaErrorInvalidResourceType, 914, "the resource is of another type than this call takes")               \
  X(cudaErrorInvalidResourceConfiguration, 915, "the resource's configuration does not fit this call")       \
  X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define CUPLEX_ENUMERATOR(name, number, sentence) name = number,
  CUPLEX_RUNTIME_ERRORS(CUPLEX_ENUMERATOR)
#undef CUPLEX_ENUMERATOR
};
using cudaError_t = cudaError;

namespace cuplex::runtime {

/// What the runtime answers where the driver answered `result`: the same number, or cudaErrorUnknown where
/// the runtime has none.
cudaError_t FromDriver(CUresult result);

/// The error's name as in "cudaErrorInvalidValue", and a sentence; null where there is no such number.
const char* NameOf(cudaError_t error);
const char* SentenceOf(cudaError_t error);

}  // namespace cuplex::runtime
