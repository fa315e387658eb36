# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway: the tokenizer of serving stacks, behind the HTTP shapes that they speak.

    cli.py        options, and the server (uvicorn) that runs the application
    app.py        the application (raw ASGI): routes, limits, keys, request ids, errors
    models.py     which models are served, and how long their contexts are
    errors.py     what is wrong with a request, as JSON
    tokenize.py   /tokenize, /detokenize
    render.py     /v1/completions/render, /v1/chat/completions/render
    sampling.py   sampling parameters, as vLLM's engine reads them
    content.py    messages, as chat templates take them
    derender.py   /v1/completions/derender, /v1/chat/completions/derender
    window.py     ids to text in pieces, with nothing kept between them

An endpoint is a function of the models and the request's body, which returns the answer's body; it
knows nothing of HTTP. Shapes are those of vLLM 0.32.0.
"""
