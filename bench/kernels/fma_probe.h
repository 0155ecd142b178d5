/// What the FMA units of one core give when nothing else is in their way: the 100 % of the
/// compute-bound benchmarks.
#pragma once

namespace holmes::kernels {

/// Multiply-adds (two FLOP each) done by a loop of independent 512-bit FMAs in registers.
/// Precondition: BestIsa() is not kScalar.
double RunFmaProbe(int iterations);

}  // namespace holmes::kernels
