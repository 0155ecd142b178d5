holmes_fuzzer(gguf DEPS weights)
holmes_fuzzer(safetensors DEPS weights)
holmes_fuzzer(hf_config DEPS weights)
