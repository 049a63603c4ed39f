#!/usr/bin/env python3
"""Make tests/golden/tokenizers: what the `tokenizers` library itself writes for the vocabulary of
tests/golden/models/llama_gguf/model.gguf, one file per pre-tokenizer that nibble knows.

Run with build/oracles/bin/python (tools/oracles/setup.sh). The expressions are those of the released tokenizer.json of
GPT-2, SmolLM2, Llama 3, Qwen3, gpt-oss and DeepSeek-V3, and of Kimi-K2's Python code; `check` compares them with such files:
    make_tokenizer_goldens.py check NAME TOKENIZER_JSON
"""

import json
import pathlib
import sys

import gguf
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tests/golden/models/llama_gguf/model.gguf"
TARGET = ROOT / "tests/golden/tokenizers"

REST = r" ?[^\s\p{L}\p{N}]+[\r\n%s]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
LLAMA3 = rf"{ENDINGS}|{BEFORE}\p{{L}}+|\p{{N}}{{1,3}}|{REST % ''}"
QWEN2 = rf"{ENDINGS}|{BEFORE}\p{{L}}+|\p{{N}}|{REST % ''}"
GPT4O = rf"{BEFORE}{UPPER}*{LOWER}+{ENDINGS}?|{BEFORE}{UPPER}+{LOWER}*{ENDINGS}?|\p{{N}}{{1,3}}|{REST % '/'}"
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^CRLF\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[CRLF]*|\s*[CRLF]+|\s+(?!\S)|\s+""".replace("CRLF", "\r\n"),
]
HAN = r"[\p{Han}]+"
UPPER2, LOWER2 = (rf"{letters[:-1]}&&[^\p{{Han}}]]" for letters in (UPPER, LOWER))
KIMI = rf"{HAN}|{BEFORE}{UPPER2}*{LOWER2}+{ENDINGS}?|{BEFORE}{UPPER2}+{LOWER2}*{ENDINGS}?|\p{{N}}{{1,3}}|{REST % ''}"


def cut(*patterns, digits=False, words=False):
    steps = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    steps += [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    steps += [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=words)]
    return pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]


KINDS = {  # name in tokenizer.ggml.pre -> (pre-tokenizer, normalizer, ignore_merges, adds bos)
    "gpt-2": (cut(words=True), None, False, False),
    "smollm": (cut(digits=True, words=True), None, False, False),
    "llama-bpe": (cut(LLAMA3), None, True, True),
    "qwen2": (cut(QWEN2), normalizers.NFC(), False, False),
    "gpt-4o": (cut(GPT4O), None, True, False),
    "deepseek-v3": (cut(*DEEPSEEK), None, False, False),
    "glm4": (cut(LLAMA3), None, False, False),
    "minimax-m2": (cut(GPT4O), None, False, False),
    "kimi-k2": (cut(KIMI), None, True, False),
}


def make(kind, fields):
    pre_tokenizer, normalizer, ignore_merges, adds_bos = KINDS[kind]
    tokens, types = fields["tokenizer.ggml.tokens"].contents(), fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    made = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=ignore_merges))
    made.pre_tokenizer, made.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer:
        made.normalizer = normalizer
    if adds_bos:
        bos = tokens[fields["tokenizer.ggml.bos_token_id"].contents()]
        made.post_processor = processors.TemplateProcessing(
            single=f"{bos}:0 $A:0", pair=f"{bos}:0 $A:0 {bos}:1 $B:1", special_tokens=[(bos, vocabulary[bos])]
        )
    made.add_special_tokens([AddedToken(token, normalized=False) for token, type in zip(tokens, types) if type == gguf.TokenType.CONTROL])
    return made


def check(kind, path):
    """The same cuts as a released tokenizer.json: its pre-tokenizer, normalizer and ignore_merges."""
    released = json.loads(pathlib.Path(path).read_text())
    pre_tokenizer, normalizer, ignore_merges, _ = KINDS[kind]
    probe = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    probe.pre_tokenizer = pre_tokenizer
    ours = json.loads(probe.to_str())
    without_offsets = lambda step: {key: value for key, value in step.items() if key != "trim_offsets"}
    theirs = [without_offsets(step) for step in released["pre_tokenizer"]["pretokenizers"]]
    mine = [without_offsets(step) for step in ours["pre_tokenizer"]["pretokenizers"]]
    same = mine == theirs and ignore_merges == released["model"].get("ignore_merges", False)
    nfc = released["normalizer"] == {"type": "NFC"}
    print(f"{kind}: {'same as' if same and nfc == (normalizer is not None) else 'DIFFERS from'} {path}")
    return same and nfc == (normalizer is not None)


def main():
    if sys.argv[1:] and sys.argv[1] != "check":
        sys.exit(__doc__)
    if sys.argv[1:2] == ["check"]:
        sys.exit(0 if check(*sys.argv[2:4]) else 1)
    fields = gguf.GGUFReader(SOURCE).fields
    TARGET.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        made = json.loads(make(kind, fields).to_str())
        (TARGET / f"{kind}.json").write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n")
    (TARGET / "VERSIONS.json").write_text(json.dumps({"tokenizers": tokenizers.__version__, "gguf": gguf.__version__ if hasattr(gguf, "__version__") else "0.19.0"}) + "\n")


if __name__ == "__main__":
    main()
