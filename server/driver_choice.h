// DriverChoice: which CUDA driver the server runs work on. Called once, by main.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cuda/driver.h"
#include "server/device.h"

namespace cuplex::server {

struct DriverChoice {
  std::unique_ptr<Driver> driver;
  std::vector<Device> devices;
  std::string label;         // for people: "softcuda", "nvidia 580.95", or the file's name
  bool begins_zero = false;  // fresh memory reads as zero, the driver says
};

/// `wanted` is a path, or "auto": the system's libcuda.so.1 where that is a driver with a device, else
/// softcuda. Our own client library, which has the same name, is passed over. `soft_path` empty: softcuda
/// lies in ../soft or ../lib beside the program. Logs one line that says which driver it is, and why.
Result<DriverChoice> ChooseDriver(const std::string& wanted, const std::string& soft_path);

}  // namespace cuplex::server
