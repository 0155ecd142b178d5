/// Writes small GGUF files, right or wrong on purpose, for the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/gguf.h"

namespace holmes::weights {

/// Appends little-endian values to a byte string.
class ByteWriter {
 public:
  template <typename T>
  ByteWriter& Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  ByteWriter& Raw(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  ByteWriter& String(std::string_view text) { return Put<std::uint64_t>(text.size()).Raw(text); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// One tensor as the file describes it; `data` is what lies in the data section.
struct BuiltTensor {
  std::string name;
  std::vector<std::uint64_t> dims;  // innermost first
  std::uint32_t type = 0;
  std::string data;
};

class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // of the layout; add the key yourself where it is not 32

  GgufBuilder& Entry(std::string_view key, GgufType type, std::string_view encoded) {
    entries_.String(key).Put(static_cast<std::uint32_t>(type)).Raw(encoded);
    ++num_entries_;
    return *this;
  }
  GgufBuilder& String(std::string_view key, std::string_view value) {
    return Entry(key, GgufType::kString, ByteWriter().String(value).bytes());
  }
  GgufBuilder& Uint32(std::string_view key, std::uint32_t value) {
    return Entry(key, GgufType::kUint32, ByteWriter().Put(value).bytes());
  }
  GgufBuilder& Float32(std::string_view key, float value) {
    return Entry(key, GgufType::kFloat32, ByteWriter().Put(value).bytes());
  }
  GgufBuilder& Bool(std::string_view key, bool value) {
    return Entry(key, GgufType::kBool, ByteWriter().Put(value).bytes());
  }
  GgufBuilder& Strings(std::string_view key, const std::vector<std::string>& values) {
    ByteWriter out;
    out.Put(static_cast<std::uint32_t>(GgufType::kString)).Put<std::uint64_t>(values.size());
    for (const std::string& value : values) out.String(value);
    return Entry(key, GgufType::kArray, out.bytes());
  }
  GgufBuilder& Int32s(std::string_view key, const std::vector<std::int32_t>& values) {
    ByteWriter out;
    out.Put(static_cast<std::uint32_t>(GgufType::kInt32)).Put<std::uint64_t>(values.size());
    for (const std::int32_t value : values) out.Put(value);
    return Entry(key, GgufType::kArray, out.bytes());
  }
  GgufBuilder& Tensor(BuiltTensor tensor) {
    tensors_.push_back(std::move(tensor));
    return *this;
  }

  std::string Build() const {
    ByteWriter head;
    head.Raw("GGUF")
        .Put(version)
        .Put<std::uint64_t>(tensors_.size())
        .Put(num_entries_)
        .Raw(entries_.bytes());
    std::string data;
    for (const BuiltTensor& tensor : tensors_) {
      head.String(tensor.name).Put(static_cast<std::uint32_t>(tensor.dims.size()));
      for (const std::uint64_t dim : tensor.dims) head.Put(dim);
      data.resize((data.size() + alignment - 1) / alignment * alignment);
      head.Put(tensor.type).Put<std::uint64_t>(data.size());
      data += tensor.data;
    }
    std::string file = head.bytes();
    if (!data.empty()) file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }

 private:
  ByteWriter entries_;
  std::uint64_t num_entries_ = 0;
  std::vector<BuiltTensor> tensors_;
};

inline std::span<const std::byte> BytesOf(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// A small complete model file: two tensors and a vocabulary of six tokens.
inline GgufBuilder SmallGguf() {
  GgufBuilder builder;
  builder.String("general.architecture", "llama")
      .String("general.name", "small")
      .Uint32("llama.block_count", 2)
      .Float32("llama.rope.freq_base", 10000.0f)
      .String("tokenizer.ggml.model", "gpt2")
      .String("tokenizer.ggml.pre", "gpt-2")
      .Strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<|im_end|>", "<think>", "</s>"})
      .Int32s("tokenizer.ggml.token_type", {1, 1, 1, 3, 4, 1})
      .Strings("tokenizer.ggml.merges", {"a b"})
      .Uint32("tokenizer.ggml.bos_token_id", 0)
      .Uint32("tokenizer.ggml.eos_token_id", 2)
      .Bool("tokenizer.ggml.add_bos_token", true)
      .String("tokenizer.chat_template", "{{ messages }}");
  builder.Tensor({"norm.weight", {4}, 0, std::string(16, 'x')});
  builder.Tensor({"w.weight", {32, 3}, 8, std::string(34 * 3, 'y')});
  return builder;
}

}  // namespace holmes::weights
