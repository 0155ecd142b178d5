#include <cuda_runtime.h>

#include "exec/cuda_devices.h"

namespace holmes::exec {
namespace {

constexpr int kProbeThreads = 256;

__global__ void ProbeKernel(int* out) { out[threadIdx.x] = static_cast<int>(3 * threadIdx.x + 1); }

Status FromCuda(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return OkStatus();
  const std::string text = what + ": " + cudaGetErrorString(error);
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction)
    return base::FailedPreconditionError(text);
  return base::UnavailableError(text);
}

/// Frees what it holds, on the device that is current then.
struct DeviceInts {
  ~DeviceInts() { cudaFree(data); }
  int* data = nullptr;
};

}  // namespace

bool BuiltWithCuda() { return true; }

StatusOr<std::vector<CudaDevice>> ListCudaDevices() {
  std::vector<CudaDevice> out;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    return out;
  }
  HOLMES_RETURN_IF_ERROR(FromCuda(error, "counting the GPUs"));
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    HOLMES_RETURN_IF_ERROR(
        FromCuda(cudaGetDeviceProperties(&properties, i), "GPU " + std::to_string(i)));
    out.push_back({.index = i,
                   .name = properties.name,
                   .compute_major = properties.major,
                   .compute_minor = properties.minor,
                   .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                   .multiprocessors = properties.multiProcessorCount});
  }
  return out;
}

Status ProbeCudaDevice(int index) {
  const std::string what = "GPU " + std::to_string(index);
  HOLMES_RETURN_IF_ERROR(FromCuda(cudaSetDevice(index), what));
  DeviceInts ints;
  HOLMES_RETURN_IF_ERROR(FromCuda(
      cudaMalloc(reinterpret_cast<void**>(&ints.data), kProbeThreads * sizeof(int)), what));
  ProbeKernel<<<1, kProbeThreads>>>(ints.data);
  HOLMES_RETURN_IF_ERROR(FromCuda(cudaGetLastError(), what));
  int host[kProbeThreads] = {};
  HOLMES_RETURN_IF_ERROR(
      FromCuda(cudaMemcpy(host, ints.data, sizeof(host), cudaMemcpyDeviceToHost), what));
  for (int i = 0; i < kProbeThreads; ++i) {
    if (host[i] != 3 * i + 1)
      return base::UnavailableError(what + " computed a wrong number; it may be defective");
  }
  return OkStatus();
}

}  // namespace holmes::exec
