holmes_fuzzer(tokenizer_json DEPS weights text)
holmes_fuzzer(stream DEPS text)
