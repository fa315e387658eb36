# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway: the tokenizer of serving stacks, behind the HTTP shapes that they speak.

    cli.py          options, and the server (uvicorn) that runs the application
    protocol.py     short requests, around ASGI
    app.py          the application (raw ASGI): routes, limits, keys, request ids, errors
    metrics.py      /metrics
    models.py       which models are served, how long their contexts are, limits of a request
    errors.py       what is wrong with a request, as JSON
    body.py         a request's body as one of the shapes
    appliances.py   appliances behind the gateway, if there are any
    tokenize.py     /tokenize, /detokenize
    tei.py          /tokenize of `inputs`, /decode, /info
    block_keys.py   block keys in answers
    embed.py        /v1/embeddings, /embed
    batches.py      the batches that an embedding model runs
    render.py       /v1/completions/render, /v1/chat/completions/render
    sampling.py     sampling parameters, as vLLM's engine reads them
    content.py      messages, as chat templates take them
    derender.py     /v1/completions/derender, /v1/chat/completions/derender
    window.py       ids to text in pieces, with nothing kept between them
    deadline.py     a limit of the time that a template takes
    sockets.py      unix sockets to listen at
    llmd/           llm-d's gRPC service, beside the HTTP server

An endpoint is a function of the models and the request's body, which returns the answer's body, or
something to wait for that does; it knows nothing of HTTP. Shapes are those of vLLM 0.32.0, and of
text-embeddings-inference (TEI).
"""
