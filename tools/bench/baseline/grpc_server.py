# SPDX-License-Identifier: BSD-3-Clause
"""Tokenize of llm-d's interface as its own server does it: `tokenizers` in a thread, for grpc.aio.

Run as `python -m bench.baseline.grpc_server unix:PATH TOKENIZER_JSON`. llm-d's calls `tokenizers`
by way of `transformers`; this does without. Without a file the answer is empty, by grpc's server
with threads: what no server in Python is faster than.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import tokenizers
from dpdk_tokd.gateway.llmd import proto

TokenizeRequest = proto.message_class("TokenizeRequest")
TokenizeResponse = proto.message_class("TokenizeResponse")


def handler_of(tokenize: Any, *how: Any) -> Any:
    calls = {"Tokenize": grpc.unary_unary_rpc_method_handler(tokenize, *how)}
    return grpc.method_handlers_generic_handler(proto.SERVICE.full_name, calls)


def serve_nothing(address: str) -> None:
    server = grpc.server(ThreadPoolExecutor())
    server.add_generic_rpc_handlers((handler_of(lambda body, context: b""),))
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


async def serve(address: str, path: str) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(path)

    async def tokenize(asked: Any, _: Any) -> Any:
        found = await asyncio.to_thread(
            tokenizer.encode, asked.input, add_special_tokens=asked.add_special_tokens
        )
        pairs: list[int] = []
        for offset in found.offsets:
            pairs.extend(offset)
        return TokenizeResponse(input_ids=found.ids, offset_pairs=pairs, success=True)

    how = TokenizeRequest.FromString, TokenizeResponse.SerializeToString
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handler_of(tokenize, *how),))
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve_nothing(sys.argv[1])
    asyncio.run(serve(*sys.argv[1:]))
