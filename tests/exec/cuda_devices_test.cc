#include "exec/cuda_devices.h"

#include <gtest/gtest.h>

namespace holmes::exec {
namespace {

TEST(CudaDevicesTest, AMachineWithoutGpuOrDriverHasAnEmptyList) {
  const auto devices = ListCudaDevices();
  ASSERT_TRUE(devices.ok()) << devices.status().ToString();
  if (!BuiltWithCuda()) {
    EXPECT_TRUE(devices->empty());
  }
  for (const CudaDevice& device : *devices) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_GE(device.compute_major, 3);
    EXPECT_GT(device.memory_bytes, std::int64_t{1} << 30);
    EXPECT_GT(device.multiprocessors, 0);
  }
}

TEST(CudaDevicesTest, EachHopperRunsThisProgramsCode) {
  const auto devices = ListCudaDevices();
  ASSERT_TRUE(devices.ok()) << devices.status().ToString();
  if (devices->empty()) GTEST_SKIP() << "no GPU, no driver or no CUDA in this build";
  for (const CudaDevice& device : *devices) {
    const Status status = ProbeCudaDevice(device.index);
    if (device.compute_major == 9) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    } else {
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
    }
  }
}

TEST(CudaDevicesTest, ADeviceThatIsNotThereIsAnError) {
  EXPECT_FALSE(ProbeCudaDevice(10'000).ok());
}

}  // namespace
}  // namespace holmes::exec
