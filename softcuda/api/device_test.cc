#include <cstring>
#include <string>

#include "softcuda/api/testing.h"

// The environment of this test: SOFTCUDA_DEVICES=2 SOFTCUDA_MEMORY=256MiB SOFTCUDA_WORKERS=2
// SOFTCUDA_MULTIPROCESSORS=7.
namespace cuplex::softcuda {
namespace {

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_CU(cuInit(0)); }

  int Attribute(CUdevice_attribute attribute, CUdevice device = 0) {
    int value = -1;
    EXPECT_CU(cuDeviceGetAttribute(&value, attribute, device));
    return value;
  }
};

TEST_F(DeviceTest, CountAndNumbers) {
  int count = 0;
  EXPECT_CU(cuDeviceGetCount(&count));
  EXPECT_EQ(count, 2);
  CUdevice device = -1;
  EXPECT_CU(cuDeviceGet(&device, 1));
  EXPECT_EQ(device, 1);
  EXPECT_CODE(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_CODE(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_CODE(cuDeviceGet(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DeviceTest, MemoryAndAttributesAreAsSet) {
  size_t bytes = 0;
  EXPECT_CU(cuDeviceTotalMem_v2(&bytes, 0));
  EXPECT_EQ(bytes, 256u << 20);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 7);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z), 64);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), 2147483647);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y), 65535);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 49152);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 101376);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 12);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 1);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 1);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH), 0);
}

TEST_F(DeviceTest, AttributesThatAreNoneAreRefused) {
  int value;
  EXPECT_CODE(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 2), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(DeviceTest, NameIsCutToTheBuffer) {
  char name[64];
  EXPECT_CU(cuDeviceGetName(name, sizeof(name), 0));
  EXPECT_EQ(std::string(name).rfind("cuplex softcuda", 0), 0u);
  std::memset(name, 'x', sizeof(name));
  EXPECT_CU(cuDeviceGetName(name, 7, 0));
  EXPECT_STREQ(name, "cuplex");
  EXPECT_EQ(name[7], 'x');
  EXPECT_CODE(cuDeviceGetName(name, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DeviceTest, UuidsDifferAndStay) {
  CUuuid first, again, second;
  EXPECT_CU(cuDeviceGetUuid_v2(&first, 0));
  EXPECT_CU(cuDeviceGetUuid_v2(&again, 0));
  EXPECT_CU(cuDeviceGetUuid_v2(&second, 1));
  EXPECT_EQ(std::memcmp(&first, &again, sizeof(first)), 0);
  EXPECT_NE(std::memcmp(&first, &second, sizeof(first)), 0);
}

TEST_F(DeviceTest, PciBusIdsLeadBack) {
  for (CUdevice device : {0, 1}) {
    char id[32];
    CUdevice found = -1;
    EXPECT_CU(cuDeviceGetPCIBusId(id, sizeof(id), device));
    EXPECT_CU(cuDeviceGetByPCIBusId(&found, id));
    EXPECT_EQ(found, device);
    EXPECT_CU(cuDeviceGetByPCIBusId(&found, id + 5));
    EXPECT_EQ(found, device);
  }
  CUdevice found;
  EXPECT_CODE(cuDeviceGetByPCIBusId(&found, "0000:7f:00.0"), CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace
}  // namespace cuplex::softcuda
