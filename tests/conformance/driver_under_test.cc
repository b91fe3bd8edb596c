#include "tests/conformance/driver_under_test.h"

#include <dlfcn.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>

#include <boost/program_options.hpp>

#include "cuda/driver.h"
#include "tests/conformance/kernels_ptx.h"

namespace cuplex::conformance {
namespace {

Options options;
std::unique_ptr<Driver> driver;
void* library = nullptr;

std::string Name(CUresult code) {
  const char* name = nullptr;
  if (driver && Cu().cuGetErrorName(code, &name) == CUDA_SUCCESS && name)
    return std::string(name) + " (" + std::to_string(code) + ")";
  return std::to_string(code);
}

}  // namespace

const Options& Given() { return options; }
const DriverTable& Cu() { return driver->table(); }
void* Exported(const char* name) { return dlsym(library, name); }

void Must(CUresult code, const char* call, const char* file, int line) {
  if (code == CUDA_SUCCESS) return;
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call + " answered " +
                           Name(code));
}

std::vector<uint8_t> Noise(size_t count, uint32_t seed) {
  std::vector<uint8_t> bytes(count);
  uint32_t x = seed * 2654435761u + 1;
  for (uint8_t& b : bytes) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<uint8_t>(x >> 24);
  }
  return bytes;
}

uint64_t FreeBytes() {
  size_t free = 0, total = 0;
  MUST(Cu().cuMemGetInfo_v2(&free, &total));
  return free;
}

Gate::~Gate() {
  Open();
  std::unique_lock hold(mutex_);
  changed_.wait(hold, [this] { return passed_; });
}

void Gate::Open() {
  std::scoped_lock hold(mutex_);
  open_ = true;
  changed_.notify_all();
}

void Gate::AwaitArrival() {
  std::unique_lock hold(mutex_);
  changed_.wait(hold, [this] { return arrived_; });
}

void Gate::Wait(void* gate) {
  auto* self = static_cast<Gate*>(gate);
  std::unique_lock hold(self->mutex_);
  self->arrived_ = true;
  self->changed_.notify_all();
  self->changed_.wait(hold, [self] { return self->open_; });
  self->passed_ = true;
  self->changed_.notify_all();
}

void Body::SetUp() { MUST(Cu().cuCtxCreate_v2(&context_, 0, 0)); }

void Body::TearDown() {
  if (!context_) return;
  EXPECT_EQ(Cu().cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  CUcontext left = nullptr;
  MUST(Cu().cuCtxGetCurrent(&left));
  EXPECT_EQ(left, nullptr);
}

CUmodule Body::Kernels() {
  if (!module_) MUST(Cu().cuModuleLoadData(&module_, kPtx));
  return module_;
}

CUfunction Body::Kernel(const char* name) {
  CUfunction function = nullptr;
  MUST(Cu().cuModuleGetFunction(&function, Kernels(), name));
  return function;
}

namespace {

constexpr int kSkipped = 77;  // as CTest is told

/// Opens the driver. An exit status, or -1 to go on.
int Begin(int argc, char** argv) {
  namespace po = boost::program_options;
  po::options_description all("driver_conformance: bodies of driver calls, on one driver");
  uint64_t total_mib = 0;
  bool device = false;
  all.add_options()("help", "this text")("driver", po::value(&options.driver)->required(),
                                         "path of a libcuda.so.1")(
      "total-mib", po::value(&total_mib), "the device memory that must be reported, in MiB")(
      "device", po::bool_switch(&device),
      "the driver is the machine's own: leave out what only cuplex promises; "
      "skipped where there is no device");
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, all), given);
    if (given.count("help")) {
      std::cout << all;
      return 0;
    }
    po::notify(given);
  } catch (const po::error& e) {
    std::cerr << "driver_conformance: " << e.what() << '\n';
    return 2;
  }
  options.ours = !device;
  options.total_bytes = total_mib << 20;
  auto opened = OpenDriver(options.driver);
  if (!opened.ok()) {
    std::cerr << "driver_conformance: " << opened.error().sentence << '\n';
    return device ? kSkipped : 1;
  }
  driver = *std::move(opened);
  library = dlopen(driver->path().c_str(), RTLD_NOW | RTLD_LOCAL);
  int count = 0;
  options.before_init = Cu().cuDeviceGetCount(&count);
  CUresult began = Cu().cuInit(0);
  if (began == CUDA_SUCCESS) began = Cu().cuDeviceGetCount(&count);
  if (began == CUDA_SUCCESS && count > 0) return -1;
  std::cerr << "driver_conformance: " << driver->path() << " has no device to offer: " << Name(began)
            << ".\n";
  return device ? kSkipped : 1;
}

}  // namespace
}  // namespace cuplex::conformance

void PrintTo(CUresult code, std::ostream* out) { *out << cuplex::conformance::Name(code); }

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const int ended = cuplex::conformance::Begin(argc, argv);
  return ended >= 0 ? ended : RUN_ALL_TESTS();
}
