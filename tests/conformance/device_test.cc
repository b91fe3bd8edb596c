// What a driver says of itself and of its devices.
#include <array>
#include <cstring>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

using DeviceQueries = Body;

TEST_F(DeviceQueries, NothingBeforeInit) { EXPECT_EQ(Given().before_init, CUDA_ERROR_NOT_INITIALIZED); }

TEST_F(DeviceQueries, InitTakesNoFlags) {
  EXPECT_EQ(Cu().cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(Cu().cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DeviceQueries, OrdinalsEndAtTheCount) {
  int count = 0;
  MUST(Cu().cuDeviceGetCount(&count));
  CUdevice device = -1;
  for (int i = 0; i < count; ++i) {
    MUST(Cu().cuDeviceGet(&device, i));
    EXPECT_EQ(device, i);
  }
  EXPECT_EQ(Cu().cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(Cu().cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  size_t bytes = 0;
  EXPECT_EQ(Cu().cuDeviceTotalMem_v2(&bytes, count), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(DeviceQueries, MemorySizesAgree) {
  size_t free = 0, total = 0, device_total = 0;
  MUST(Cu().cuMemGetInfo_v2(&free, &total));
  MUST(Cu().cuDeviceTotalMem_v2(&device_total, 0));
  EXPECT_EQ(total, device_total);
  EXPECT_LE(free, total);
  if (Given().total_bytes) EXPECT_EQ(total, Given().total_bytes);
}

TEST_F(DeviceQueries, EitherNumberOfMemGetInfoAlone) {
  ONLY_OURS();
  size_t free = 0, total = 0;
  EXPECT_EQ(Cu().cuMemGetInfo_v2(nullptr, &total), CUDA_SUCCESS);
  EXPECT_EQ(Cu().cuMemGetInfo_v2(&free, nullptr), CUDA_SUCCESS);
  EXPECT_GT(total, 0u);
  EXPECT_GT(free, 0u);
}

TEST_F(DeviceQueries, CapabilityIsAnAttributeToo) {
  int major = 0, minor = 0, a = 0, b = 0;
  MUST(Cu().cuDeviceComputeCapability(&major, &minor, 0));
  MUST(Cu().cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  MUST(Cu().cuDeviceGetAttribute(&b, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  EXPECT_EQ(major, a);
  EXPECT_EQ(minor, b);
  EXPECT_GE(major, 5);
}

TEST_F(DeviceQueries, AttributesThatHoldForEveryDevice) {
  // Constants of every device since compute capability 2.0, by NVIDIA's programming guide.
  const std::vector<std::pair<CUdevice_attribute, int>> known = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},  {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},   {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536}, {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
  };
  for (auto [attribute, expected] : known) {
    int value = -1;
    EXPECT_EQ(Cu().cuDeviceGetAttribute(&value, attribute, 0), CUDA_SUCCESS) << attribute;
    EXPECT_EQ(value, expected) << "attribute " << attribute;
  }
  int value = 0;
  EXPECT_EQ(Cu().cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cu().cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100000), 0),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DeviceQueries, NamesFitWhereTheyAreTold) {
  char name[256] = {};
  MUST(Cu().cuDeviceGetName(name, sizeof(name), 0));
  EXPECT_GT(strlen(name), 0u);
  char small[16];
  memset(small, '#', sizeof(small));
  (void)Cu().cuDeviceGetName(small, 5, 0);
  for (int i = 5; i < 16; ++i) EXPECT_EQ(small[i], '#');
  memset(small, '#', sizeof(small));
  (void)Cu().cuDeviceGetPCIBusId(small, 5, 0);
  for (int i = 5; i < 16; ++i) EXPECT_EQ(small[i], '#');
}

TEST_F(DeviceQueries, BusIdAndUuidNameTheDevice) {
  char bus[32] = {};
  MUST(Cu().cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
  CUdevice device = -1;
  MUST(Cu().cuDeviceGetByPCIBusId(&device, bus));
  EXPECT_EQ(device, 0);
  CUuuid one{}, two{};
  MUST(Cu().cuDeviceGetUuid(&one, 0));
  MUST(Cu().cuDeviceGetUuid_v2(&two, 0));
  EXPECT_EQ(memcmp(&one, &two, 16), 0);
  EXPECT_NE(memcmp(&one, std::array<char, 16>{}.data(), 16), 0);
}

TEST_F(DeviceQueries, ErrorsHaveNamesAndSentences) {
  const char* text = nullptr;
  MUST(Cu().cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  MUST(Cu().cuGetErrorName(static_cast<CUresult>(700), &text));
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  MUST(Cu().cuGetErrorString(CUDA_SUCCESS, &text));
  EXPECT_GT(strlen(text), 0u);
  EXPECT_EQ(Cu().cuGetErrorName(static_cast<CUresult>(123456), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

TEST_F(DeviceQueries, VersionIsOfOurTime) {
  int version = 0;
  MUST(Cu().cuDriverGetVersion(&version));
  EXPECT_GE(version, 11000);
  EXPECT_EQ(version % 10, 0);
}

}  // namespace
}  // namespace cuplex::conformance
