#include "exec/cuda_devices.h"

namespace holmes::exec {

bool BuiltWithCuda() { return false; }

StatusOr<std::vector<CudaDevice>> ListCudaDevices() { return std::vector<CudaDevice>(); }

Status ProbeCudaDevice(int) {
  return base::UnimplementedError("this program was built without CUDA");
}

}  // namespace holmes::exec
