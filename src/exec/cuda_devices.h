/// The GPUs of this machine, for start-up messages and the choice of a back end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace holmes::exec {

struct CudaDevice {
  int index = 0;
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  std::int64_t memory_bytes = 0;
  int multiprocessors = 0;
};

/// Whether this program holds CUDA code.
bool BuiltWithCuda();

/// Devices that this process may use; none without a driver, without a device, or in a build
/// without CUDA. Touches no device, so it costs no context.
/// Errors: kUnavailable with the driver's own words when there is a driver that fails.
StatusOr<std::vector<CudaDevice>> ListCudaDevices();

/// Runs a small kernel on the device and checks what it wrote.
/// Errors: kFailedPrecondition where the device cannot run this program's code (built for sm_90a),
/// kUnimplemented in a build without CUDA, kUnavailable when the device fails.
Status ProbeCudaDevice(int index);

}  // namespace holmes::exec
