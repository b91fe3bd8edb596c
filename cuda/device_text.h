// What kernels print (printf, failed assertions), and how a driver gives it to who asks.
//
// CUDA drivers write it to the process's own standard output and error. A driver that several programs stand
// behind must tell them apart, so softcuda exports, besides the driver API, `cuplex_give_device_text`: with a
// receiver set, what a kernel has printed goes to the receiver and nowhere else, before anything that waits
// for the kernel learns of its end.
#pragma once

#include <cstddef>

#include "cuda/driver_types.h"

namespace cuplex {

enum class TextStream : int { kOutput = 1, kError = 2 };

/// Called on any thread, also on several at once for different contexts; must neither block for long nor call
/// CUDA.
using DeviceTextReceiver = void(void* user, CUcontext context, TextStream stream, const char* text,
                                size_t bytes);

/// The exported function: to be called before the first context is made. Null: back to the process's own
/// streams.
using GiveDeviceText = void(DeviceTextReceiver* receiver, void* user);
inline constexpr const char* kGiveDeviceText = "cuplex_give_device_text";

}  // namespace cuplex
