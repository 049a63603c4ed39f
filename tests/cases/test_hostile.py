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
        self.refuse_file("a.safetensors", raw_safetensors('{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}', bytes(8)), ["w"])
        one = {"w": ("U8", [4], bytes(4))}
        folder = write_shards(self.dir / "s", {"model-00001-of-00002.safetensors": one, "model-00002-of-00002.safetensors": one}, {"model_type": "x"})
        self.refused("verify", folder, says=["w", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"])

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
        self.refuse_file("a.gguf", huge + bytes(160 - len(huge)), ["1073741824"])
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

    def test_names_cannot_write_to_the_terminal(self):
        name = "w\u001b[31m\u0007"
        data = safetensors_bytes({name: ("U8", [4], bytes(4))})
        (self.dir / "a.safetensors").write_bytes(data)
        outcome = self.nibble("verify", self.dir / "a.safetensors")
        self.assertNotIn("\x1b[31m", outcome.text)
        self.assertNotIn("\x07", outcome.text)


if __name__ == "__main__":
    unittest.main()
