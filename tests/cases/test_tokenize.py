"""`nibble tokenize`: promised keys, exit codes, what a user's text may not do, refusals."""

import json
import unittest

from checkpoints import *  # noqa: F403

SYMBOLS = [chr(c) for c in range(ord("!"), ord("~") + 1)] + ["Ġ", "Ċ", "Ã", "©"]
MERGES = [["h", "e"], ["l", "l"], ["he", "ll"], ["hell", "o"], ["Ã", "©"]]


def small_tokenizer():
    names = SYMBOLS + ["".join(merge) for merge in MERGES]
    end = {"id": len(names), "content": "<|end|>", "single_word": False, "lstrip": False, "rstrip": False,
           "normalized": False, "special": True}
    return {"version": "1.0", "added_tokens": [end], "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": None, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": {name: i for i, name in enumerate(names)}, "merges": MERGES}}


class Tokenize(CaseTest):
    def setUp(self):
        super().setUp()
        self.write(small_tokenizer())

    def write(self, tokenizer, config=None):
        (self.dir / "tokenizer.json").write_text(json.dumps(tokenizer))
        if config is not None:
            (self.dir / "tokenizer_config.json").write_text(json.dumps(config))

    def ids(self, *names):
        vocabulary = small_tokenizer()["model"]["vocab"]
        return [vocabulary.get(name, len(vocabulary)) for name in names]

    def test_text_to_ids_and_back(self):
        outcome = self.done("tokenize", self.dir, "-p", "hello hé")
        self.assertEqual(outcome.json, {"tokens": self.ids("hello", "Ġ", "h", "Ã©"), "text": "hello hé"})
        back = self.done("tokenize", self.dir, "--decode", ",".join(map(str, outcome.json["tokens"])))
        self.assertEqual(back.json, outcome.json)
        (self.dir / "text").write_bytes(b"hell\xffo\n")
        outcome = self.done("tokenize", self.dir / "tokenizer.json", "--file", self.dir / "text")
        self.assertEqual(outcome.json["tokens"], self.ids("hell", "o", "Ċ"))  # the vocabulary lacks U+FFFD's bytes
        self.assertEqual(self.done("tokenize", self.dir, "-p", "").json, {"tokens": [], "text": ""})

    def test_a_users_text_is_text(self):
        plain = self.done("tokenize", self.dir, "-p", "<|end|>").json["tokens"]
        self.assertEqual(plain, self.ids(*"<|end|>"))
        self.assertEqual(self.done("tokenize", self.dir, "-p", "<|end|>", "--control").json["tokens"], self.ids("<|end|>"))

    def test_what_the_configuration_puts_in_front(self):
        self.write(small_tokenizer(), {"add_bos_token": True, "bos_token": "<|end|>"})
        self.assertEqual(self.done("tokenize", self.dir, "-p", "a").json["tokens"], self.ids("<|end|>", "a"))
        self.assertEqual(self.done("tokenize", self.dir, "-p", "a", "--bare").json["tokens"], self.ids("a"))

    def test_refusals(self):
        for ids in ("100000", "-1", "99999999999999999999"):
            error = self.refused("tokenize", self.dir, f"--decode={ids}").json["error"]
            self.assertEqual(error["values"]["id"], ids)
        wordpiece = small_tokenizer()
        wordpiece["model"]["type"] = "WordPiece"
        self.write(wordpiece)
        error = self.refused("tokenize", self.dir, "-p", "a").json["error"]
        self.assertEqual((error["values"]["kind"], error["file"]), ("WordPiece", str(self.dir / "tokenizer.json")))
        (self.dir / "tokenizer.json").unlink()
        error = self.refused("tokenize", self.dir, "-p", "a").json["error"]
        self.assertTrue(error["ways_out"] and error["file"] == str(self.dir))

    def test_wrong_usage(self):
        for arguments in ((), ("-p", "a", "--decode", "1"), ("--decode", "a"), ("--decode", "1,,2")):
            self.assertEqual(self.nibble("tokenize", self.dir, *arguments).code, 2, arguments)


if __name__ == "__main__":
    unittest.main()
