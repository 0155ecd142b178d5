holmes_fuzzer(api_request DEPS api)
