#!/usr/bin/env python3
"""Write tests/golden/models: tiny random checkpoints in the published layouts, plain and quantized.

Run with the environment of tools/oracles/setup.sh:
    build/oracles/bin/python tools/make_tiny_models.py
`models/NAME/` is a checkpoint folder; `models/expected/NAME.safetensors` holds token ids and the float32 logits that
transformers computes from its weights, dequantized where they are quantized. Every run writes the same bytes.
"""

import argparse

from oracles import families, tiny, tiny_gguf, tiny_quant


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for family in families.configs():
        config, tensors = families.build(family)
        tiny.write(tiny.MODELS / family, config, tensors)
        tiny.write_expected(family, config, tensors)
        print(f"{family}: {len(tensors)} tensors")
    for make in (*tiny_quant.ALL, *tiny_gguf.ALL):
        print(make())


if __name__ == "__main__":
    main()
