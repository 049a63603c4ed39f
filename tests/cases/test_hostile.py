"""Cases of section 1.5: hostile containers. Bounded time and memory, one clear error."""

import unittest

from checkpoints import *  # noqa: F403


def gguf_string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(tensors=b"", n_tensors=0, pairs=b"", n_pairs=0, version=3):
    return b"GGUF" + struct.pack("<Iqq", version, n_tensors, n_pairs) + pairs + tensors


def tensor_info(name, dims, kind=0, offset=0):
    return gguf_string(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, offset)


class Hostile(CaseTest):
    def refuse_file(self, name, data, says):
        path = self.dir / name
        path.write_bytes(data)
        for command in (("inspect", path), ("verify", path), ("quantize", path, self.dir / "t", "--format", "bf16")):
            self.refused(*command, says=says, timeout=20)
            self.assertFalse((self.dir / "t").exists())

    def test_C111_span_shorter_than_the_shape(self):
        self.refuse_file("a.safetensors", raw_safetensors('{"w":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}}', bytes(4)), ["w", "4000000", "4"])

    def test_C113_malformed_offsets(self):
        for offsets in (None, "[0]", "[0,2,4]", "[4,0]", "[-1,3]", "[0,4.5]", '["0","4"]', "[0,1e30]", "null"):
            field = "" if offsets is None else ',"data_offsets":' + offsets
            self.refuse_file("a.safetensors", raw_safetensors('{"w":{"dtype":"U8","shape":[4]%s}}' % field, bytes(4)), ["w"])

    def test_C115_overlaps_gaps_and_duplicates(self):
        for spans, size in (((0, 4, 2, 6), 6), ((0, 4, 8, 12), 12)):
            header = '{"first":{"dtype":"U8","shape":[4],"data_offsets":[%d,%d]},"second":{"dtype":"U8","shape":[4],"data_offsets":[%d,%d]}}' % spans
            self.refuse_file("a.safetensors", raw_safetensors(header, bytes(size)), ["first", "second", spans[2], spans[1]])
        self.refuse_file("a.safetensors", raw_safetensors('{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}', bytes(8)), ["w", "[0, 4]", "[4, 8]"])
        one = {"w": ("U8", [4], bytes(4))}
        folder = write_shards(self.dir / "s", {"model-00001-of-00002.safetensors": one, "model-00002-of-00002.safetensors": one}, {"model_type": "x"})
        self.refused("verify", folder, says=["w", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "[96, 100]"])

    def test_C117_a_header_of_exactly_100000_bytes(self):
        tensors, at = {}, 0
        for i in range(852):
            tensors["t%04d" % i] = {"dtype": "U8", "shape": [1], "data_offsets": [at, at + 1]}
            at += 1
        text = json.dumps(tensors)
        self.assertLess(len(text), 100000)
        (self.dir / "a.safetensors").write_bytes(raw_safetensors(text + " " * (100000 - len(text)), bytes(at)))
        self.assertEqual(self.done("inspect", self.dir / "a.safetensors").json["tensors"], 852)

    def test_C119_element_counts_that_wrap(self):
        for dims in ((4194304, 4398046511105), (2**32, 2**32)):
            self.refuse_file("a.gguf", gguf(tensor_info("w", dims), 1) + bytes(64), ["w", dims[0], dims[1]])
            header = '{"w":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,4]}}' % dims
            self.refuse_file("a.safetensors", raw_safetensors(header, bytes(4)), ["w", dims[0], dims[1]])

    def test_C121_zero_dimensions_and_empty_keys(self):
        self.refuse_file("a.gguf", gguf(tensor_info("w", (0, 4), kind=2), 1) + bytes(16), ["w"])
        self.refuse_file("a.gguf", gguf(pairs=gguf_string("") + struct.pack("<IB", 7, 1), n_pairs=1) + bytes(40), ["key"])

    def test_C123_small_files_that_ask_for_gigabytes(self):
        huge = gguf(pairs=gguf_string("general.name") + struct.pack("<I", 8) + struct.pack("<Q", 2**30), n_pairs=1)
        self.refuse_file("a.gguf", huge + bytes(160 - len(huge)), ["1073741824", str(160 - len(huge))])
        nested = gguf_string("deep") + struct.pack("<I", 9) + b"".join(struct.pack("<IQ", 9, 1) for _ in range(5)) + struct.pack("<IQ", 4, 1) + struct.pack("<I", 1)
        self.refuse_file("a.gguf", gguf(pairs=nested, n_pairs=1) + bytes(64), ["4"])
        self.refuse_file("a.gguf", gguf(n_tensors=2**60) + bytes(64), [2**60])
        self.refuse_file("a.gguf", gguf(n_pairs=-1) + bytes(64), [])

    def test_headers_that_are_none(self):
        for data in (b"", b"\0" * 7, struct.pack("<Q", 2**63), struct.pack("<Q", 100_000_001) + b" " * 100, raw_safetensors("[]", b""), raw_safetensors("{", b""), raw_safetensors(b'{"\xff":1}', b""), raw_safetensors('{"w":' * 5000, b"")):
            self.refuse_file("a.safetensors", data, ["a.safetensors"])

    def test_trailing_bytes(self):
        data = safetensors_bytes({"w": ("U8", [4], bytes(4))}) + b"x" * 10
        self.refuse_file("a.safetensors", data, ["10"])
        self.nibble("verify", self.dir / "a.safetensors", "--allow-trailing")

    def test_index_with_paths(self):
        for name in ("../evil.safetensors", "/etc/passwd", "a/b.safetensors", "..", ""):
            folder = write_folder(self.dir / "s", {"w": ("U8", [4], bytes(4))}, {"model_type": "x"})
            (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": name}}))
            self.refused("verify", folder, says=["w"])

    def test_shapes_without_elements(self):
        """Legal, whatever number of slices they claim, and copied as they are."""
        shapes = ([0], [0, 4], [4, 0], [0, 4, 4], [2**40, 4, 0], [0, 2**64 - 1, 2**64 - 1])
        data = safetensors_bytes({"w%d" % i: ("F32", shape, b"") for i, shape in enumerate(shapes)} | {"v": ("U8", [4], bytes(4))})
        (self.dir / "a.safetensors").write_bytes(data)
        for command in (("inspect",), ("verify",), ("quantize", self.dir / "t", "--format", "bf16")):
            self.done(command[0], self.dir / "a.safetensors", *command[1:], timeout=20)
        self.assertEqual(read_folder(self.dir / "t"), read_safetensors(self.dir / "a.safetensors"))

    def test_files_without_tensors(self):
        (self.dir / "a.safetensors").write_bytes(raw_safetensors("{}", b""))
        self.refused("quantize", self.dir / "a.safetensors", self.dir / "t", "--format", "bf16", says=["no tensors", "a.safetensors"])
        (self.dir / "a.gguf").write_bytes(gguf() + bytes(64))
        self.refused("quantize", self.dir / "a.gguf", self.dir / "t", "--format", "bf16", says=["no tensors", "a.gguf"])
        self.assertFalse((self.dir / "t").exists())

    def test_configurations(self):
        tensors, config = qwen3_moe()
        text = json.dumps(config)
        folder = write_folder(self.dir / "s", tensors, config)

        def with_value(key, value):
            return text.replace('"%s": %s' % (key, json.dumps(config[key])), '"%s": %s' % (key, value))

        bad = [with_value(key, value) for key, value in (
            ("hidden_size", "NaN"), ("hidden_size", "1e400"), ("hidden_size", "9" * 23), ("num_hidden_layers", "9223372036854775807"),
            ("num_hidden_layers", "4294967297"), ("num_hidden_layers", "-1"), ("num_hidden_layers", "0"), ("num_hidden_layers", "2.5"),
            ("num_hidden_layers", '"2"'), ("num_hidden_layers", "true"), ("num_experts", "1000000000"), ("num_experts_per_tok", "9"),
            ("moe_intermediate_size", "33"), ("head_dim", "0"), ("num_key_value_heads", "3"), ("rms_norm_eps", "-1"),
            ("mlp_only_layers", "[99999999999]"), ("decoder_sparse_step", "0"), ("torch_dtype", '"int3"'))]
        bad += [text[:-1] + tail for tail in (', "hidden_size": 64}', ', "x": ' + "[" * 100000 + "]" * 100000 + "}", ', "x": "\\ud800"}', "}x", " /* */}")]
        bad += ["", "[1]", "null"]
        for content in [*(b.encode() for b in bad), text.encode()[:-1] + b', "x": "\xff"}', text.encode("utf-16")]:
            (folder / "config.json").write_bytes(content)
            self.refused("quantize", folder, self.dir / "t", "--format", "mxfp4", says=["config.json"] if b'"moe_intermediate_size": 33' not in content else ["[33, 64]", "[32, 64]"], timeout=20)
            self.refused("verify", folder, timeout=20)
            self.assertFalse((self.dir / "t").exists())

    def test_names_cannot_write_to_the_terminal(self):
        name = "w\u001b[31m\u0007"
        data = safetensors_bytes({name: ("U8", [4], bytes(4))})
        (self.dir / "a.safetensors").write_bytes(data)
        outcome = self.nibble("verify", self.dir / "a.safetensors")
        self.assertNotIn("\x1b[31m", outcome.text)
        self.assertNotIn("\x07", outcome.text)


if __name__ == "__main__":
    unittest.main()
