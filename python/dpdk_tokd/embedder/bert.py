# SPDX-License-Identifier: BSD-3-Clause
"""The network of a BERT for ONNX Runtime, from config.json and model.safetensors.

Its nodes are ONNX Runtime's own for transformers, one where the ONNX standard takes a dozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# What the network below is; a configuration that says otherwise is refused.
EXPECTED = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
}
OPSET, CONTRIB_OPSET, IR_VERSION = 17, 1, 8


def read_weights(path: str) -> dict[str, Any]:
    """float32 arrays by their names in a model without a head."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        names = [str(name) for name in file.keys()]  # noqa: SIM118  # it is no dict
        return {
            name.removeprefix("bert."): file.get_tensor(name).astype(np.float32)
            for name in names
            if "position_ids" not in name
        }


class Network:
    """Nodes and weights as they are added; each node's output is named by `add`."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self._given = weights
        self._nodes: list[Any] = []
        self._weights: dict[str, Any] = {}

    def add(self, op: str, *inputs: str, domain: str = "com.microsoft", **attributes: Any) -> str:
        from onnx import helper

        output = f"{op}_{len(self._nodes)}"
        # EmbedLayerNormalization has a second output, which nothing takes.
        outputs = [output, f"{output}_lengths"] if op == "EmbedLayerNormalization" else [output]
        self._nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **attributes))
        return output

    def table(self, name: str) -> str:
        """A matrix whose rows are looked up."""
        self._weights[name] = self._tensor(name)
        return name

    def weight(self, *names: str) -> str:
        """The matrix of linear layers side by side, stored transposed, or their bias."""
        arrays = [self._tensor(name).T for name in names]
        self._weights[names[0]] = np.ascontiguousarray(np.concatenate(arrays, axis=-1))
        return names[0]

    def _tensor(self, name: str) -> Any:
        if name not in self._given:
            raise ValueError(f"there is no tensor {name}")
        return self._given[name]

    def model(self, output: str) -> bytes:
        from onnx import TensorProto, helper, numpy_helper

        def value(name: str, kind: int, *shape: str) -> Any:
            return helper.make_tensor_value_info(name, kind, shape)

        graph = helper.make_graph(
            [*self._nodes, helper.make_node("Identity", [output], ["last_hidden_state"])],
            "bert",
            [
                value(name, TensorProto.INT64, "texts", "tokens")
                for name in ("input_ids", "attention_mask")
            ],
            [value("last_hidden_state", TensorProto.FLOAT, "texts", "tokens", "dimensions")],
            [numpy_helper.from_array(array, name) for name, array in self._weights.items()],
        )
        opsets = [
            helper.make_opsetid("", OPSET),
            helper.make_opsetid("com.microsoft", CONTRIB_OPSET),
        ]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        return bytes(made.SerializeToString())


def network(config: Mapping[str, Any], weights: Mapping[str, Any]) -> bytes:
    """A model in ONNX's format: input_ids, attention_mask to last_hidden_state. ValueError: the
    configuration is of another network, or a weight is missing."""
    from onnx import TensorProto

    for name, wanted in EXPECTED.items():
        found = config.get(name, wanted)
        if found != wanted:
            raise ValueError(f"config.json: {name} is {found!r}, built from weights is {wanted!r}")
    epsilon = config["layer_norm_eps"]
    made = Network(weights)

    def pair(name: str) -> tuple[str, str]:
        return made.weight(f"{name}.weight"), made.weight(f"{name}.bias")

    ids, mask = (
        made.add("Cast", name, domain="", to=TensorProto.INT32)
        for name in ("input_ids", "attention_mask")
    )
    zeros = made.add("Sub", ids, ids, domain="")  # one sequence: all are of type 0
    x = made.add(
        "EmbedLayerNormalization",
        ids,
        zeros,
        *(
            made.table(f"embeddings.{kind}_embeddings.weight")
            for kind in ("word", "position", "token_type")
        ),
        *pair("embeddings.LayerNorm"),
        epsilon=epsilon,
    )
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        parts = [f"{layer}.attention.self.{name}" for name in ("query", "key", "value")]
        attended = made.add(
            "Attention",
            x,
            made.weight(*(f"{part}.weight" for part in parts)),
            made.weight(*(f"{part}.bias" for part in parts)),
            mask,
            num_heads=config["num_attention_heads"],
        )
        weight, bias = pair(f"{layer}.attention.output.dense")
        x = made.add(
            "SkipLayerNormalization",
            made.add("MatMul", attended, weight, domain=""),
            x,
            *pair(f"{layer}.attention.output.LayerNorm"),
            bias,
            epsilon=epsilon,
        )
        weight, bias = pair(f"{layer}.intermediate.dense")
        wide = made.add("BiasGelu", made.add("MatMul", x, weight, domain=""), bias)
        weight, bias = pair(f"{layer}.output.dense")
        x = made.add(
            "SkipLayerNormalization",
            made.add("MatMul", wide, weight, domain=""),
            x,
            *pair(f"{layer}.output.LayerNorm"),
            bias,
            epsilon=epsilon,
        )
    return made.model(x)
