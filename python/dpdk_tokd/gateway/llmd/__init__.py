# SPDX-License-Identifier: BSD-3-Clause
"""llm-d's gRPC service in the gateway, imported only where it is asked for.

    tokenizer.proto   the interface
    proto.py          its messages
    service.py        its calls
    server.py         the server at a unix socket, with health and reflection

A call is a function of the request's bytes, which returns the answer's; it knows nothing of gRPC.
"""
