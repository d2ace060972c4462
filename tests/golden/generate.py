#!/usr/bin/python3
"""Vectors for golden_test.cpp: two decoders written in PyTorch from their papers, in float64.

For each case, CASE/model.safetensors holds the weights as Hugging Face names them (float32) and
CASE/expected.safetensors the tokens and what follows from them: logits, loss, every gradient, and
the weights after three AdamW steps on the same tokens (float64).

Sources: Vaswani et al. 2017; Radford et al. 2019 (GPT-2); Touvron et al. 2023 (Llama); Su et al.
2021 (rotary positions); Zhang and Sennrich 2019 (RMSNorm); Shazeer 2020 (SwiGLU); Hendrycks and
Gimpel 2016 (GELU); Jiang et al. 2023 (sliding window); Loshchilov and Hutter 2019 (AdamW); the
"llama3" rope_scaling and the q/k norms and biases as the published configs of Llama 3.1, Qwen 2 and
Qwen 3 have them.
Nothing here is taken from Fivefold, so that an error would have to be made twice.
"""

import json
import math
import os
import struct

import torch

LR, BETA1, BETA2, EPS, DECAY, STEPS = 1e-2, 0.9, 0.95, 1e-3, 0.1, 3
# EPS is large because gradients that are zero but for rounding (a key bias under softmax) would
# otherwise be steps of full length in a random direction.


def rms_norm(x, weight, eps):
    return weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return weight * centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + eps) + bias


def gelu_new(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def rope_frequencies(case):
    frequencies = []
    for i in range(case["head_dim"] // 2):
        f = case["rope_theta"] ** (-2 * i / case["head_dim"])
        s = case.get("rope_scaling")
        if s:
            wavelength = 2 * math.pi / f
            turns = s["original_max_position_embeddings"] / wavelength
            if turns < s["low_freq_factor"]:
                f /= s["factor"]
            elif turns <= s["high_freq_factor"]:
                low, high = s["low_freq_factor"], s["high_freq_factor"]
                share = (turns - low) / (high - low)
                f = (1 - share) * f / s["factor"] + share * f
        frequencies.append(f)
    return torch.tensor(frequencies, dtype=torch.float64)


def rotate(x, positions, frequencies):
    """x is [B, heads, T, D]; element i is rotated against element i + D/2."""
    angles = positions.to(torch.float64)[:, None, :, None] * frequencies
    cos, sin = torch.cos(angles).to(x.dtype), torch.sin(angles).to(x.dtype)
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def visible(batch, case):
    """[B, 1, T, T]: may query i look at key j?"""
    T = batch["tokens"].shape[1]
    i, j = torch.arange(T)[:, None], torch.arange(T)[None, :]
    seen = (j <= i).expand(len(batch["tokens"]), T, T)
    if case.get("sliding_window"):
        seen = seen & (i - j < case["sliding_window"])
    document = batch["document"]
    return (seen & (document[:, :, None] == document[:, None, :]))[:, None]


def attention(q, k, v, seen):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(~seen, -math.inf), -1) @ v


def heads(x, count):
    return x.view(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def llama_logits(w, case, batch):
    eps, H, G = case["norm_eps"], case["num_heads"], case["num_kv_heads"]
    frequencies, seen = rope_frequencies(case), visible(batch, case)
    x = w["model.embed_tokens.weight"][batch["tokens"].long()]
    for n in range(case["num_layers"]):
        at = lambda name: w[f"model.layers.{n}.{name}"]
        h = rms_norm(x, at("input_layernorm.weight"), eps)
        q, k, v = (h @ at(f"self_attn.{p}_proj.weight").T for p in "qkv")
        if case.get("qkv_bias"):
            q, k, v = (y + at(f"self_attn.{p}_proj.bias") for y, p in zip((q, k, v), "qkv"))
        q, k, v = heads(q, H), heads(k, G), heads(v, G)
        if case.get("qk_norm"):
            q = rms_norm(q, at("self_attn.q_norm.weight"), eps)
            k = rms_norm(k, at("self_attn.k_norm.weight"), eps)
        q, k = (rotate(y, batch["positions"], frequencies) for y in (q, k))
        k, v = (y.repeat_interleave(H // G, 1) for y in (k, v))
        mixed = attention(q, k, v, seen).transpose(1, 2).flatten(2)
        x = x + mixed @ at("self_attn.o_proj.weight").T
        h = rms_norm(x, at("post_attention_layernorm.weight"), eps)
        gate, up = (h @ at(f"mlp.{p}_proj.weight").T for p in ("gate", "up"))
        x = x + (gate * torch.sigmoid(gate) * up) @ at("mlp.down_proj.weight").T
    x = rms_norm(x, w["model.norm.weight"], eps)
    return x @ w["model.embed_tokens.weight" if case["tied"] else "lm_head.weight"].T


def gpt2_logits(w, case, batch):
    eps, H, seen = case["norm_eps"], case["num_heads"], visible(batch, case)
    x = w["transformer.wte.weight"][batch["tokens"].long()]
    x = x + w["transformer.wpe.weight"][batch["positions"].long()]
    for n in range(case["num_layers"]):
        at = lambda name: w[f"transformer.h.{n}.{name}"]
        conv = lambda y, name: y @ at(name + ".weight") + at(name + ".bias")
        h = layer_norm(x, at("ln_1.weight"), at("ln_1.bias"), eps)
        q, k, v = (heads(y, H) for y in conv(h, "attn.c_attn").chunk(3, -1))
        x = x + conv(attention(q, k, v, seen).transpose(1, 2).flatten(2), "attn.c_proj")
        h = layer_norm(x, at("ln_2.weight"), at("ln_2.bias"), eps)
        x = x + conv(gelu_new(conv(h, "mlp.c_fc")), "mlp.c_proj")
    x = layer_norm(x, w["transformer.ln_f.weight"], w["transformer.ln_f.bias"], eps)
    return x @ w["transformer.wte.weight"].T


def mean_loss(logits, targets):
    """Sum of the token losses over the number of tokens that bear one."""
    kept = targets >= 0
    chosen = logits.gather(-1, targets.clamp(min=0).long()[..., None])[..., 0]
    return (torch.logsumexp(logits, -1) - chosen)[kept].sum() / kept.sum()


def shapes_of(case):
    D, V, F = case["dim"], case["vocab_size"], case["hidden_dim"]
    shapes = {}
    if case["architecture"] == "gpt2":
        shapes["transformer.wte.weight"] = [V, D]
        shapes["transformer.wpe.weight"] = [case["max_seq_len"], D]
        for n in range(case["num_layers"]):
            for name, shape in (("ln_1.weight", [D]), ("ln_1.bias", [D]), ("ln_2.weight", [D]),
                                ("ln_2.bias", [D]), ("attn.c_attn.weight", [D, 3 * D]),
                                ("attn.c_attn.bias", [3 * D]), ("attn.c_proj.weight", [D, D]),
                                ("attn.c_proj.bias", [D]), ("mlp.c_fc.weight", [D, F]),
                                ("mlp.c_fc.bias", [F]), ("mlp.c_proj.weight", [F, D]),
                                ("mlp.c_proj.bias", [D])):
                shapes[f"transformer.h.{n}.{name}"] = shape
        return {**shapes, "transformer.ln_f.weight": [D], "transformer.ln_f.bias": [D]}
    Q, K = case["num_heads"] * case["head_dim"], case["num_kv_heads"] * case["head_dim"]
    shapes["model.embed_tokens.weight"] = [V, D]
    for n in range(case["num_layers"]):
        layer = {"input_layernorm.weight": [D], "post_attention_layernorm.weight": [D],
                 "self_attn.q_proj.weight": [Q, D], "self_attn.k_proj.weight": [K, D],
                 "self_attn.v_proj.weight": [K, D], "self_attn.o_proj.weight": [D, Q],
                 "mlp.gate_proj.weight": [F, D], "mlp.up_proj.weight": [F, D],
                 "mlp.down_proj.weight": [D, F]}
        if case.get("qkv_bias"):
            layer.update({f"self_attn.{p}_proj.bias": [n_] for p, n_ in zip("qkv", (Q, K, K))})
        if case.get("qk_norm"):
            layer.update({f"self_attn.{p}_norm.weight": [case["head_dim"]] for p in "qk"})
        shapes.update({f"model.layers.{n}.{name}": shape for name, shape in layer.items()})
    shapes["model.norm.weight"] = [D]
    if not case["tied"]:
        shapes["lm_head.weight"] = [V, D]
    return shapes


def make_weights(case, generator):
    """Large enough that every non-linearity is used away from its linear part."""
    weights = {}
    for name, shape in shapes_of(case).items():
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        is_gain = len(shape) == 1 and not name.endswith("bias")
        x = 1 + 0.2 * x if is_gain else x * (0.5 if "emb" in name or "wte" in name else 0.25)
        weights[name] = x.to(torch.float32)
    return weights


def make_batch(case, generator):
    B, T, V = 2, case["seq_len"], case["vocab_size"]
    stream = torch.randint(0, V, (B, T + 1), generator=generator)
    tokens, targets = stream[:, :-1].contiguous(), stream[:, 1:].clone()
    document = torch.zeros(B, T, dtype=torch.long)
    for row, borders in enumerate(case.get("borders", [[], []])):
        for border in borders:
            document[row, border:] += 1
            targets[row, border - 1] = -1  # does not predict the next document's first token
    start = torch.zeros(B, T, dtype=torch.long)
    for row in range(B):
        for t in range(1, T):
            start[row, t] = start[row, t - 1] if document[row, t] == document[row, t - 1] else t
    targets[1, 3:6] = -1  # and a masked prompt
    return {"tokens": tokens.int(), "targets": targets.int(), "document": document,
            "document_start": start.int(), "positions": (torch.arange(T) - start).int()}


def forward(weights, case, batch):
    logits = (gpt2_logits if case["architecture"] == "gpt2" else llama_logits)(weights, case, batch)
    return logits, mean_loss(logits, batch["targets"])


def gradients_of(weights, case, batch):
    leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
    logits, loss = forward(leaves, case, batch)
    gradients = dict(zip(leaves, torch.autograd.grad(loss, leaves.values())))
    return logits.detach(), loss.detach(), gradients


def adamw(weights, case, batch):
    """Decoupled decay of matrices only. Returns the last weights and the loss before each step."""
    w = dict(weights)
    m, v = ({name: torch.zeros_like(x) for name, x in w.items()} for _ in range(2))
    losses = []
    for t in range(1, STEPS + 1):
        _, loss, gradients = gradients_of(w, case, batch)
        losses.append(loss)
        for name, g in gradients.items():
            m[name] = BETA1 * m[name] + (1 - BETA1) * g
            v[name] = BETA2 * v[name] + (1 - BETA2) * g * g
            m_hat, v_hat = m[name] / (1 - BETA1**t), v[name] / (1 - BETA2**t)
            decay = LR * DECAY if w[name].dim() >= 2 else 0
            w[name] = w[name] - decay * w[name] - LR * m_hat / (torch.sqrt(v_hat) + EPS)
    return w, torch.stack(losses)


def write_safetensors(path, tensors):
    kinds = {torch.float32: "F32", torch.float64: "F64", torch.int32: "I32"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name in sorted(tensors):
        raw = tensors[name].contiguous().numpy().tobytes()
        header[name] = {"dtype": kinds[tensors[name].dtype], "shape": list(tensors[name].shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


LLAMA = dict(architecture="llama", vocab_size=37, dim=32, num_layers=2, num_heads=4, num_kv_heads=2,
             head_dim=8, hidden_dim=40, seq_len=24, norm_eps=1e-5, rope_theta=10000.0, tied=False)
CASES = {
    "llama": LLAMA,
    "llama_packed": dict(LLAMA, borders=[[5, 17], [1, 8, 9]]),
    "llama_options": dict(LLAMA, tied=True, qk_norm=True, qkv_bias=True, sliding_window=7,
                          norm_eps=1e-6, rope_theta=100.0,
                          rope_scaling=dict(factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                            original_max_position_embeddings=64)),
    "gpt2": dict(architecture="gpt2", vocab_size=37, dim=32, num_layers=2, num_heads=4, head_dim=8,
                 hidden_dim=40, max_seq_len=24, seq_len=24, norm_eps=1e-5, tied=True),
}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    torch.set_num_threads(1)
    for seed, (name, case) in enumerate(CASES.items()):
        generator = torch.Generator().manual_seed(seed)
        weights, batch = make_weights(case, generator), make_batch(case, generator)
        double = {k: w.double() for k, w in weights.items()}
        logits, loss, gradients = gradients_of(double, case, batch)
        after, losses = adamw(double, case, batch)
        expected = {"logits": logits, "losses": losses}
        expected.update({k: batch[k] for k in ("tokens", "targets", "positions", "document_start")})
        expected.update({f"gradient.{k}": g for k, g in gradients.items()})
        expected.update({f"after.{k}": w for k, w in after.items()})
        os.makedirs(f"{here}/{name}", exist_ok=True)
        write_safetensors(f"{here}/{name}/model.safetensors", weights)
        write_safetensors(f"{here}/{name}/expected.safetensors", expected)

        _, single_loss, single = gradients_of(weights, case, batch)
        total = math.sqrt(sum(float((g * g).sum()) for g in gradients.values()))
        worst = max(float((single[k] - g).norm()) / max(float(g.norm()), 1e-3 * total)
                    for k, g in gradients.items())
        print(f"{name}: losses {losses.tolist()}, norm of the gradient {total:.4f}; PyTorch's own "
              f"float32 is off by {abs(float(single_loss - loss)):.1e} in the loss and "
              f"{worst:.1e} in the worst gradient")


if __name__ == "__main__":
    main()
