holmes_fuzzer(tokenizer_json DEPS weights text)
holmes_fuzzer(stream DEPS text)
holmes_fuzzer(tokenizer DEPS text)
holmes_fuzzer(pattern DEPS text)
