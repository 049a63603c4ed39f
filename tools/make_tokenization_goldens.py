#!/usr/bin/env python3
"""Make tests/golden/tokenization: the ids that the `tokenizers` library gives for published and for small tokenizers.

Run with build/oracles/bin/python (tools/oracles/setup.sh), after tools/fetch_smollm2.py. The published tokenizers and
the long text lie packed in tests/data/tokenizers; that of SmolLM2 is written there from the fetched file, as a GGUF
file without tensors.

    texts.json       what is encoded: `hard` texts, 2,000 `random` ones, `control` texts that spell control tokens
    NAME.json        for each published tokenizer: ids of hard and control texts, digests of the random ones and of the
                     long text
    small.json       small tokenizers, one setting each, with their texts and ids
    kimi/            a small release in tiktoken's form, and the ids by the definition, with the `regex` package
"""

import base64
import hashlib
import json
import lzma
import pathlib
import random
import sys
import unicodedata

import gguf
import regex
import tokenizers
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fetch_smollm2
import make_smollm2_golden

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data" / "tokenizers"
TARGET = ROOT / "tests" / "golden" / "tokenization"
PUBLISHED = ("deepseek_v3", "gptoss", "qwen3")
SMOLLM2 = "smollm2.vocabulary.gguf"

WORDS = [
    "", " ", "  ", "a", " a", "a ", "Hello world", " Hello  world ", "The quick brown fox jumps over the lazy dog.",
    "don't can't we'll I'M YOU'RE they'Ve it'D he'S", "don’t can’t we’ll I’M", "'s't're've'm'll'd 'S'T'RE'VE'M'LL'D 'ſ 'K",
    "''''", "x'sy 'llama 'dog 's", "camelCase PascalCase snake_case SCREAMING_CASE kebab-case iPhone McDonald JSONParser",
    "ＦＵＬＬ ｗｉｄｔｈ １２３ ａｂｃ", "ÀÉÎÕÜ àéîõü ÿŸ ßẞ ǅ ǈ ǋ ʰʲ ªº", "İstanbul ıSPARTA ΣΊΣΥΦΟΣ σίσυφος",
    "e\u0301 E\u0301\u0301 a\u030a\u0323 \u0301lone \u1100\u1161\u11a8 \uac00\u11a8 \u212b \u2126 \ufb01 \u1e9b\u0323",
    "q\u0307\u0323 q\u0323\u0307 \u0958 \u2adc \U0001d15e \uf900 \U0002f800", "Z\u0351\u036b\u0343a\u0363\u0343l\u0348g\u031bo\u0321",
]
SCRIPTS = [
    "Русский текст, с пунктуацией… и цифрами 123", "Ελληνικά κείμενο· ερώτηση;", "עברית עם נִקּוּד וטקסט", "العربية مع تَشْكِيل و ١٢٣٤٥",
    "فارسی با نیم‌فاصله می‌شود", "हिन्दी क्षत्रिय ज्ञान १२३", "বাংলা ভাষা", "தமிழ் எழுத்து", "తెలుగు", "ಕನ್ನಡ", "മലയാളം", "ไทยไม่มีช่องว่าง ๑๒๓",
    "ລາວ", "ខ្មែរ", "မြန်မာ", "བོད་ཡིག", "ქართული ႠႡ", "Հայերեն", "አማርኛ ፩፪፫", "中文分词是基础任务，标点。繁體中文「引號」", "日本語のテキスト カタカナ ﾊﾝｶｸ々〆ヶ", "한국어 텍스트 조합",
    "ᄒ\u1161\u11ab글 ㅎㅏㄴ", "𠀀𠮷 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟘𝟙𝟚 𐍈 𓀀 𒀀 𞤀𞤁", "Ꭰ ᎣᎵ ꭰ ᐃᓄᒃᑎᑐᑦ ᚠᚢ ᚁ ⲁⲂ ⴰ ߊ ꓐ ᠮᠣᠩ", "𞄀 𞅀 𑄶 𑒰 𖩠 𖭐", "mixed中文English日本語한국어Русский",
    "中文english中文ENGLISH中文 GPT4发布于2023年", "ÇA VA? ¿Qué? ¡Olé! «guillemets» „Anführung“",
]
SYMBOLS = [
    "😀 😃😄 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🇩🇪🇫🇷 1️⃣ #️⃣ ❤️ ☎︎ 👨🏿‍🚒", "½ ² Ⅷ ① ㊿ 〇 ௰ 𐄇 ٣ ۳ ߃ ३ ৩ ๓ 𝟛 𑁩 ３", "0 00 000 0000 00000 1234567890123456789012345678901234567890",
    "3.14159 1,234,567.89 1e-10 0xDEADBEEF 2024-01-31T23:59:59Z v1.2.3-rc4", "١٢٣٤٥٦٧ १२३४५ 1٢३4", "a1b2c3 x² H₂O m³ 10⁻⁹",
    "!@#$%^&*()_+-=[]{}|;':\",./<>?`~", "...---===___***###", "a.b,c;d:e!f?g", "→ ⇒ ∀x∈ℝ ∑∏∫ √2 ≠ ≤ ∞ €£¥₿ ©®™ °C", "/path/to/file.txt C:\\Windows\\n https://example.com/?q=a%20b&c=d#e",
    "\\n\\t\\\\ \\u0041 %s %d {} {{}} ${x} $(y) `z`", "a/b//c///\n/d", "“curly” ‘quotes’ – — … • ‣ ⁂", "\u202a\u202b\u202c\u202d\u202e\u2066\u2069\u200e\u200f\u061c",
    "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u034fh\u180ei", "\ue000\uf8ff\U000f0000\U0010fffd private", "\ufdd0\ufffe\uffff\U0001ffff\U0010ffff noncharacters",
    "\ufffd\ufffd ￼", "\ufeffbom", "<html><body class=\"x\">&nbsp;</body></html>", "<|not_a_token|> <|im_start <| |> [INST] <s> </s>",
]
SPACES = [
    "".join(f"a{chr(c)}b{chr(c)}{chr(c)} {chr(c)}c" for c in range(0x3001) if chr(c).isspace() or c in (0x180E, 0x200B)),
    "\t\ta\n\tb\r\n  c\r d\n\n\n e\r\n\r\n\r\nf \n \n g", "   leading", "trailing   ", "trailing newline\n", "\n", "\r\n", "\n\n\n\n", " \n ", "\r\r\n\n\r", "a\u2028b\u2029c\x85d\x0be\x0cf",
    "    def f(x):\n        return x ** 2\n\n\tif y:\n\t\tpass\n", "for (int i = 0; i < n; ++i) {\n\t\t// tab\n\t}\r\n", "a" + " " * 100 + "b", " " * 1000, "\n" * 300, "\t" * 65 + "x", " \t \t \n \t",
    "a\u00a0b\u00a0\u00a0c \u00a0d", "\u3000全角　空白\u3000\u3000", "a \x00 b\x00\x00c", "".join(map(chr, range(0x20))) + "\x7f" + "".join(map(chr, range(0x80, 0xA0))),
]
LONG = [
    "a" * 5000, "ab" * 3000, "A" * 3000, "aA" * 2000, "中" * 3000, "é" * 2000, "0" * 2000, "!" * 2000, "😀" * 700, "\u0301" * 1000, "_" * 1500, "the" * 1500, "ACGT" * 1000,
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 20, "'s" * 700, "=" * 79 + "\n" + "-" * 79 + "\n",
]
BYTES = [
    "80", "c0af", "c3", "e282", "e28261", "f09f98", "f09f9880f09f98", "eda080", "edbfbf", "f4908080", "f8888080", "ff", "fe41", "61c3c3a962", "e0808061", "f08080", "c280", "00ff00", "efbfbd",
    "ffffffff", "e2e2e2", "f0f0f0", "61e4bd62", "f09f61f09f9881", "c1bf", "20a0", "e3809fe3",
]
CONTROL = [
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nHello<|im_end|>", "<|im_start|><|im_end|>", "  <|im_end|>  ", "a<|endoftext|>b <|endoftext|> c", "<|im_end|", "<<|im_end|>>",
    "<｜begin▁of▁sentence｜><｜User｜>Hi<｜Assistant｜>Hello<｜end▁of▁sentence｜>", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n<｜tool▁call▁end｜>", "x <｜fim▁begin｜>a<｜fim▁hole｜>b<｜fim▁end｜>", "<｜▁pad▁｜> <|EOT|>",
    "<|start|>system<|message|>You are<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>", "<|call|> <|constrain|>json<|endofprompt|>", "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "e\u0301<|im_end|>\u0301", "<|reserved_200017|>é<|fim_prefix|>",
    "<repo_name>x<file_sep>y<filename>z<gh_stars>",
]


def random_texts(count=2000, seed=20240229):
    """Strings over assigned code points: of one block at a time mostly, since words are of one script."""
    rng = random.Random(seed)
    assigned = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    plain = [ord(c) for c in "aeioust AEST019.,'\n\t-_/  "]
    texts = []
    for i in range(count):
        start = rng.randrange(len(assigned))
        block = assigned[start : start + rng.choice((8, 64, 256))]
        pools = [assigned, block, block, plain] if i % 4 else [assigned]
        texts.append("".join(chr(rng.choice(rng.choice(pools))) for _ in range(rng.randrange(1, 40))))
    return texts


def digest(ids):
    return hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()[:16]


def smollm2_tokenizer():
    return make_smollm2_golden.tokenizer(gguf.GGUFReader(fetch_smollm2.TARGET))


def write_smollm2_vocabulary():
    """The fetched file's tokenizer keys alone."""
    reader = gguf.GGUFReader(fetch_smollm2.TARGET)
    path = DATA / SMOLLM2
    writer = gguf.GGUFWriter(path, "llama")
    for key, field in reader.fields.items():
        if not key.startswith("tokenizer.") or key == "tokenizer.chat_template":
            continue
        value = field.contents()
        if isinstance(value, list):
            writer.add_key_value(key, value, gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(field.types[1]))
        else:
            writer.add_key_value(key, value, gguf.GGUFValueType(field.types[0]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    data = path.read_bytes()
    path.unlink()
    pathlib.Path(f"{path}.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def published(name):
    if name == "smollm2":
        return smollm2_tokenizer()
    with lzma.open(DATA / f"{name}.tokenizer.json.xz", "rt", encoding="utf-8") as file:
        return Tokenizer.from_str(file.read())


def published_golden(name, texts, long_text):
    tokenizer = published(name)
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    whole = encode(long_text)
    hard = [encode(text) for text in texts["hard"]] + [encode(bytes.fromhex(hex).decode("utf-8", "replace")) for hex in texts["bytes"]]
    decode = lambda ids, skip: hashlib.sha256(tokenizer.decode(ids, skip_special_tokens=skip).encode()).hexdigest()[:16]
    control = [encode(text) for text in texts["control"]]
    return {
        "hard": hard,
        "decoded": [decode(ids, False) for ids in hard],
        "random": [digest(encode(text)) for text in texts["random"]],
        "control": control,
        "control_decoded": [[decode(ids, True), decode(ids, False)] for ids in control],
        "long": {"count": len(whole), "digest": digest(whole), "first": whole[:16]},
    }


def small_base():
    symbols = sorted(ByteLevel.alphabet())
    merges = [["Ġ", "a"], ["t", "h"], ["th", "e"], ["Ġ", "the"], ["a", "a"], ["aa", "aa"], ["Ġ", "Ġ"], ["1", "2"], ["12", "3"], ["Ã", "©"], ["h", "e"], ["l", "l"], ["he", "ll"], ["hell", "o"], ["<", "x"], ["<x", ">"], ["s", "t"]]
    names = symbols + ["".join(merge) for merge in merges]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {name: i for i, name in enumerate(names)}, "merges": merges},
    }


def added(id, content, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} | flags


def byte_level(**settings):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False} | settings


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def split(pattern, behavior, invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


SMALL_TEXTS = ["", "the hello a aa  aaaa", " the\n the", "hello12345the", "--a--b-", "-", "a-", "-a", "the--the-", "héé é", "x <x> y", "12 123 ab12cd"]


def small_cases():
    """(name, what differs from the base, texts)"""
    first = len(small_base()["model"]["vocab"])
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield f"split {behavior}{' inverted' if invert else ''}", {"pre_tokenizer": sequence(split("-", behavior, invert), byte_level())}, SMALL_TEXTS
            yield f"split pairs {behavior}{' inverted' if invert else ''}", {"pre_tokenizer": sequence(split("-|[a-h]+", behavior, invert), byte_level())}, SMALL_TEXTS
    yield "split text", {"pre_tokenizer": sequence(split("he.l", "Isolated", kind="String"), byte_level())}, SMALL_TEXTS + ["he.lo hello he.l"]
    yield "split special characters", {"pre_tokenizer": sequence(split("a-^]&&[~\\", "MergedWithNext", kind="String"), byte_level())}, ["aa-^]&&[~\\aa", "a"]
    yield "split empty matches", {"pre_tokenizer": sequence(split("a*", "Isolated"), byte_level())}, SMALL_TEXTS
    yield "split word class", {"pre_tokenizer": sequence(split(r"\w+|[^\w\s]+", "Isolated"), byte_level())}, SMALL_TEXTS + ["a\u200db_c·d", "क्ष"]
    yield "split hex class", {"pre_tokenizer": sequence(split(r"\h+", "Isolated"), byte_level())}, SMALL_TEXTS
    yield "split line ends", {"pre_tokenizer": sequence(split(r"^the|a$|h.", "Isolated"), byte_level())}, ["the a\nthe a", "h\nh\rh\u2028h", "xthe a\r\nthe"]
    yield "split nested classes", {"pre_tokenizer": sequence(split(r"[a-h&&[^e]]+|[[:digit:]]+", "Isolated"), byte_level())}, SMALL_TEXTS
    yield "split lookbehind", {"pre_tokenizer": sequence(split(r"(?<=h)e|(?<!h)l", "Isolated"), byte_level())}, SMALL_TEXTS
    yield "digits", {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, byte_level())}, SMALL_TEXTS + ["a²Ⅷ½٣x"]
    yield "digits together", {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": False}, byte_level())}, SMALL_TEXTS + ["a²Ⅷ½٣x"]
    yield "prefix space", {"pre_tokenizer": byte_level(add_prefix_space=True, use_regex=True)}, SMALL_TEXTS
    yield "prefix space behind a split", {"pre_tokenizer": sequence(split("-", "Isolated"), byte_level(add_prefix_space=True, use_regex=True))}, SMALL_TEXTS
    yield "no words", {"pre_tokenizer": byte_level()}, SMALL_TEXTS
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield form, {"normalizer": {"type": form}}, ["é e\u0301 ﬁ ² \u1100\u1161 가 Å", "q\u0307\u0323"]
    yield "NFD then NFKC", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "NFKC"}]}}, ["é e\u0301 ﬁ ²"]
    spaced = ["x<x>y", "x <x> y", "x  <x>  <x> y", "<x>", " <x> ", "<x><x>", "a\n<x>\u3000\nb", "é<x>é", "a_<x> <x>1", "(<x>)"]
    for flags in ({}, {"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}, {"single_word": True}, {"single_word": True, "lstrip": True, "rstrip": True}, {"special": False}, {"normalized": True}, {"normalized": True, "special": False, "lstrip": True}):
        yield f"added {flags}", {"added_tokens": [added(first, "<x|>"), added(first - 2, "<x>", **flags)]}, spaced + ["<x|><x>"]
    yield "added, the longest first", {"added_tokens": [added(first, "<a"), added(first + 1, "<ab>"), added(first + 2, "b>c")]}, ["<ab>c", "<ab<ab>", "<a<ab>b>c", "<abb>c"]
    yield "added and normalized", {"normalizer": {"type": "NFKC"}, "added_tokens": [added(first, "<ﬁ>", normalized=True), added(first + 1, "<é>", normalized=False), added(first + 2, "<²|>", normalized=True, special=False)]}, ["<fi><ﬁ>", "<é><e\u0301>", "<2|> <²|>²", "a<fi>é"]
    yield "added words", {"added_tokens": [added(small_base()["model"]["vocab"]["hell"], "hell", special=False, normalized=True), added(first, "  ", special=False)]}, SMALL_TEXTS + ["shell  hello   "]
    yield "ignore merges", {"model": {"ignore_merges": True}}, SMALL_TEXTS
    yield "merges as lines", {"model": {"merges": ["#version: 0.2"] + [" ".join(merge) for merge in small_base()["model"]["merges"]]}}, SMALL_TEXTS
    yield "a merge twice", {"model": {"merges": small_base()["model"]["merges"] + [["t", "h"], ["Ġ", "a"]]}}, SMALL_TEXTS + ["the st sthe"]
    lacking = {name: i for name, i in small_base()["model"]["vocab"].items() if name not in ("Ĩ", "x", "y", "-")}
    lacking["?"] = small_base()["model"]["vocab"]["?"]
    yield "bytes left out", {"model": {"vocab": lacking, "merges": [["a", "a"], ["t", "h"]]}}, ["axa", "axxya", "-", "thxthyx"]
    for fuse in (False, True):
        yield f"an unknown token{', fused' if fuse else ''}", {"model": {"vocab": lacking, "merges": [["a", "a"], ["t", "h"]], "unk_token": "?", "fuse_unk": fuse}}, ["axa", "axxya", "-", "thxthyx"]
    frame = lambda *pieces: {"type": "TemplateProcessing", "single": list(pieces), "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [first], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [first + 1, first], "tokens": ["</s>", "<s>"]}}}
    special = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    tokens = {"added_tokens": [added(first, "<s>"), added(first + 1, "</s>")]}
    yield "template", tokens | {"post_processor": frame(special("<s>"), text, special("</s>"))}, SMALL_TEXTS
    yield "a template in a sequence", tokens | {"post_processor": {"type": "Sequence", "processors": [byte_level(), frame(special("<s>"), text, special("</s>"))]}}, SMALL_TEXTS
    yield "roberta", tokens | {"post_processor": {"type": "RobertaProcessing", "sep": ["</s>", first + 1], "cls": ["<s>", first], "trim_offsets": True, "add_prefix_space": False}}, SMALL_TEXTS


def small_golden():
    cases = []
    for name, changes, texts in small_cases():
        made = small_base()
        for key, value in changes.items():
            made[key] = made[key] | value if key == "model" else value
        tokenizer = Tokenizer.from_str(json.dumps(made))
        rows = []
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            rows.append({"text": text, "ids": ids, "framed": tokenizer.encode(text).ids})
            # The library decodes such names as if they were symbols of bytes, or in their normalized form.
            if name != "added and normalized":
                rows[-1] |= {"decoded": tokenizer.decode(ids, skip_special_tokens=True), "shown": tokenizer.decode(ids, skip_special_tokens=False)}
        cases.append({"name": name, "changes": changes, "texts": rows})
    return {"base": small_base(), "cases": cases}


HAN = r"[\p{Han}]+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
ENDING, BEFORE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"[^\r\n\p{L}\p{N}]?"
KIMI = "|".join([HAN, f"{BEFORE}{UPPER}*{LOWER}+{ENDING}", f"{BEFORE}{UPPER}+{LOWER}*{ENDING}", r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


def tiktoken_ids(text, ranks):
    ids = []
    for word in regex.compile(KIMI, regex.V1).findall(text):
        parts = [bytes([byte]) for byte in word.encode()]
        if word.encode() in ranks:
            parts = [word.encode()]
        while len(parts) > 1:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], len(ranks)))
            if parts[best] + parts[best + 1] not in ranks:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        ids += [ranks[part] for part in parts]
    return ids


def kimi_golden(texts):
    """The first tokens of gpt-oss's vocabulary, which came from a tiktoken file, as a release of Kimi-K2's form."""
    with lzma.open(DATA / "gptoss.tokenizer.json.xz", "rt", encoding="utf-8") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    symbols = {symbol: byte for byte, symbol in gpt2_symbols().items()}
    tokens = sorted(vocabulary, key=vocabulary.get)[:3000]
    ranks = {bytes(symbols[c] for c in token): i for i, token in enumerate(tokens)}
    folder = TARGET / "kimi"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiktoken.model").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
    names = {0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 3: "<|im_user|>", 10: "<|tool_calls_section_begin|>", 255: "[PAD]"}
    decoder = {str(len(ranks) + i): {"content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": i != 10} for i, name in names.items()}
    config = {"added_tokens_decoder": decoder, "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}, "bos_token": "[BOS]", "eos_token": "[EOS]", "tokenizer_class": "TikTokenTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    usable = [text for text in texts["hard"] if len(text) < 600]
    write(folder / "ids.json", {"texts": usable, "ids": [tiktoken_ids(text, ranks) for text in usable], "random": [digest(tiktoken_ids(text, ranks)) for text in texts["random"]]})


def gpt2_symbols():
    own = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {byte: chr(byte) for byte in own} | {byte: chr(0x100 + i) for i, byte in enumerate(others)}


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(item, separators=(',', ':'))}" for key, item in value.items())
    path.write_text("{\n" + rows + "\n}\n")


def main():
    write_smollm2_vocabulary()
    texts = {"hard": [*WORDS, *SCRIPTS, *SYMBOLS, *SPACES, *LONG], "bytes": BYTES, "random": random_texts(), "control": CONTROL}
    write(TARGET / "texts.json", texts)
    with lzma.open(DATA / "tinyshakespeare.txt.xz", "rt", encoding="utf-8", newline="") as file:
        long_text = file.read()
    for name in (*PUBLISHED, "smollm2"):
        write(TARGET / f"{name}.json", published_golden(name, texts, long_text))
    write(TARGET / "small.json", small_golden())
    kimi_golden(texts)
    write(TARGET / "VERSIONS.json", {"tokenizers": tokenizers.__version__, "regex": regex.__version__, "unicode": unicodedata.unidata_version})


if __name__ == "__main__":
    main()
