holmes_fuzzer(http_request DEPS net)
holmes_fuzzer(sse DEPS net)
