// One instruction a function: what CUDA C++ has no spelling for. Shared addresses are 32-bit offsets of the shared
// window.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace nibble::ptx {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// d += a b on a warp: a (16, 16) BF16 by rows, b (16, 8) BF16 by columns, d (16, 8) float32.
__device__ __forceinline__ void mma_16x8x16(float d[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                            uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Two BF16 products or differences in one register; subnormals are kept.
__device__ __forceinline__ uint32_t multiply_pair(uint32_t a, uint32_t b) {
  uint32_t out;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(0x80008000u));  // plus -0
  return out;
}
__device__ __forceinline__ uint32_t add_pair(uint32_t a, uint32_t b) {
  uint32_t out;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(0x3F803F80u), "r"(b));
  return out;
}

__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// A warp's ring of shared memory: copies of a multiple of 16 bytes from global memory, a stage each, in order, and the
// wait for the oldest. On Hopper and later lane 0 hands the copy to the bulk copy engine, which may let L2 forget the
// lines first, and the stage's mbarrier counts its bytes; before, all lanes copy 16 bytes a time and groups are
// counted.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ void barrier_init_visible() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ uint64_t evict_first_policy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ void ring_copy(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier,
                                          uint64_t policy) {
  if (threadIdx.x % 32 != 0) return;
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
}
__device__ __forceinline__ void ring_skip() {}
template <int kStages>
__device__ __forceinline__ void ring_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "WAIT:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
      "@!done bra WAIT;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
// Orders ordinary accesses to shared memory before those of copies that follow.
__device__ __forceinline__ void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Programmatic dependent launch: let the next grid start; wait for the one before.
__device__ __forceinline__ void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ __forceinline__ void wait_for_predecessor() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
__device__ __forceinline__ void barrier_init_visible() {}
__device__ __forceinline__ uint64_t evict_first_policy() { return 0; }
__device__ __forceinline__ void ring_skip() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void ring_copy(uint32_t to, const void* from, uint32_t bytes, uint32_t /*barrier*/,
                                          uint64_t /*policy*/) {
  for (uint32_t at = threadIdx.x % 32 * 16; at < bytes; at += 32 * 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + at), "l"(static_cast<const char*>(from) + at)
                 : "memory");
  }
  ring_skip();
}
template <int kStages>
__device__ __forceinline__ void ring_wait(uint32_t /*barrier*/, uint32_t /*parity*/) {
  asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 1) : "memory");
  __syncwarp();
}
__device__ __forceinline__ void fence_async_shared() {}
__device__ __forceinline__ void launch_dependents() {}
__device__ __forceinline__ void wait_for_predecessor() {}
#endif

// Words that carry their own flag: a reader that finds the flag of this call has the data, with no barrier in between.
// Eight aligned bytes are written and read as one.
__device__ __forceinline__ void store_flagged(uint2* to, uint32_t data, uint32_t flag) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};" ::"l"(to), "r"(data), "r"(flag) : "memory");
}
__device__ __forceinline__ uint4 load_flagged(const uint2* from) {  // two of them
  uint4 out;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
               : "l"(from)
               : "memory");
  return out;
}
__device__ __forceinline__ void add_relaxed(uint64_t* counter, uint64_t amount) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(counter), "l"(amount) : "memory");
}

}  // namespace nibble::ptx
