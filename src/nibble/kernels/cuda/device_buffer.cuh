// Memory of the GPU for tests and benchmarks: freed with its owner, every call checked, exit 1 with the call's words.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace nibble {

inline void cuda_check(cudaError_t error, const char* call, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(error));
  std::exit(1);
}
#define NIBBLE_CUDA(call) ::nibble::cuda_check((call), #call, __LINE__)

template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(uint64_t count) : count_(count) { NIBBLE_CUDA(cudaMalloc(&data_, count * sizeof(T))); }
  explicit DeviceBuffer(const std::vector<T>& host) : DeviceBuffer(host.size()) { write(host); }
  DeviceBuffer(DeviceBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(data_); }

  T* data() const { return data_; }
  uint64_t size() const { return count_; }
  void fill(int byte) { NIBBLE_CUDA(cudaMemset(data_, byte, count_ * sizeof(T))); }
  void write(const std::vector<T>& host) {
    NIBBLE_CUDA(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> read(uint64_t from, uint64_t count) const {
    std::vector<T> host(count);
    NIBBLE_CUDA(cudaMemcpy(host.data(), data_ + from, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  std::vector<T> read() const { return read(0, count_); }

 private:
  T* data_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace nibble
