# Makes the container goldens of this folder with the field's own writers:
#   pip install safetensors==0.8.0 gguf==0.19.0 numpy && python make_containers.py
import gguf
import numpy as np
import safetensors

# safetensors: every width, a scalar, an empty tensor, a name that needs escapes; given in no particular order.
tensors = {
    "layer.1.weight": ("bfloat16", [2, 3], bytes(range(12))),
    "layer.0.weight": ("bfloat16", [2, 3], bytes(range(12, 24))),
    "flags": ("bool", [3], bytes([1, 0, 1])),
    "scale": ("float8_e8m0fnu", [2, 2], bytes([127, 128, 0, 120])),
    "codes": ("uint8", [1, 3], bytes([0x21, 0x43, 0x65])),
    "fp8": ("float8_e4m3fn", [2, 1], bytes([0x38, 0x7E])),
    "scalar": ("float32", [], np.float32(1.5).tobytes()),
    "empty": ("int32", [2, 0], b""),
    "position": ("int64", [2], np.array([3, -1], dtype="<i8").tobytes()),
    "double": ("float64", [1], np.float64(0.1).tobytes()),
    'a "quoted"\n\\ name with \u00fc and \u0001': ("uint16", [2], bytes([1, 2, 3, 4])),
    "half": ("float16", [1, 1, 2], bytes([0, 0x3C, 0, 0xC0])),
}
buffers = {name: np.frombuffer(data, dtype=np.uint8) for name, (_, _, data) in tensors.items()}
specs = {
    name: safetensors.TensorSpec(
        dtype=dtype, shape=shape, data_ptr=buffers[name].ctypes.data, data_len=buffers[name].nbytes
    )
    for name, (dtype, shape, _) in tensors.items()
}
safetensors.serialize_file(specs, "reference.safetensors", {"format": "pt"})

writer = gguf.GGUFWriter("reference.gguf", "llama")
writer.add_uint8("test.u8", 200)
writer.add_int8("test.i8", -5)
writer.add_int32("test.i32", -70000)
writer.add_uint64("test.u64", 1 << 40)
writer.add_float32("test.f32", 0.5)
writer.add_float64("test.f64", 0.1)
writer.add_bool("test.bool", True)
writer.add_string("test.string", "vi\u00eb")
writer.add_array("test.strings", ["a", "", "\u00fc"])
writer.add_array("test.numbers", [1, 2, 3])
writer.add_tensor("token_embd.weight", np.arange(6, dtype=np.float32).reshape(2, 3))
writer.add_tensor("norm.weight", np.array([1, 2, 3], dtype=np.float16))
writer.add_tensor(
    "blk.0.ffn_up.weight", np.arange(2 * 36, dtype=np.uint8).reshape(2, 36), raw_dtype=gguf.GGMLQuantizationType.Q4_0
)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
