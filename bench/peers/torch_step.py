#!/usr/bin/python3
"""Times a training step of PyTorch on the CPU, float32, AdamW, random tokens; prints one JSON line.

    /usr/bin/python3 bench/peers/torch_step.py --model gpt2_124m --micro-batch 4 --seq-len 64

The models are those of configs/models/ of the same names, without dropout. bench/train_step.py runs
this with the settings under which Debian's PyTorch is fastest (an OpenMP OpenBLAS, a malloc that
keeps its pages); run by itself it takes the environment as it finds it.
"""

import argparse
import ctypes
import json
import math
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

MODELS = {
    "gpt2_124m": dict(kind="gpt2", vocab=50257, dim=768, layers=12, heads=12, hidden=3072,
                      positions=1024),
    "llama_288x6_v32000": dict(kind="llama", vocab=32000, dim=288, layers=6, heads=6, hidden=768),
    "llama_288x6_v4096": dict(kind="llama", vocab=4096, dim=288, layers=6, heads=6, hidden=768),
}


class RmsNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    """This PyTorch has no fused attention: softmax of a whole, masked score matrix."""

    def __init__(self, dim, heads, bias):
        super().__init__()
        self.heads = heads
        # One product for q, k and v.
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias), nn.Linear(dim, dim, bias)

    def forward(self, x, hidden_keys, rotation):
        B, T, dim = x.shape
        split = lambda y: y.view(B, T, self.heads, dim // self.heads).transpose(1, 2)
        q, k, v = (split(y) for y in self.qkv(x).split(dim, 2))
        if rotation is not None:
            q, k = rotate(q, *rotation), rotate(k, *rotation)
        scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(dim // self.heads))
        weights = functional.softmax(scores.masked_fill(hidden_keys, -1e10), -1)
        return self.out((weights @ v).transpose(1, 2).reshape(B, T, dim))


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class GeluMlp(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x), approximate="tanh"))


class SwigluMlp(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate, self.up = nn.Linear(dim, hidden, False), nn.Linear(dim, hidden, False)
        self.down = nn.Linear(hidden, dim, False)

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, m):
        super().__init__()
        gpt2 = m["kind"] == "gpt2"
        norm = nn.LayerNorm if gpt2 else RmsNorm
        self.norm1, self.norm2 = norm(m["dim"]), norm(m["dim"])
        self.attention = Attention(m["dim"], m["heads"], bias=gpt2)
        self.mlp = (GeluMlp if gpt2 else SwigluMlp)(m["dim"], m["hidden"])

    def forward(self, x, hidden_keys, rotation):
        x = x + self.attention(self.norm1(x), hidden_keys, rotation)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, m, seq_len):
        super().__init__()
        gpt2 = m["kind"] == "gpt2"
        self.vocab = m["vocab"]
        self.tokens = nn.Embedding(m["vocab"], m["dim"])
        self.positions = nn.Embedding(m["positions"], m["dim"]) if gpt2 else None
        for table in (self.tokens, self.positions):
            if table is not None:
                nn.init.normal_(table.weight, 0, 0.02)
        self.blocks = nn.ModuleList(Block(m) for _ in range(m["layers"]))
        self.norm = (nn.LayerNorm if gpt2 else RmsNorm)(m["dim"])
        self.hidden_keys = torch.ones(seq_len, seq_len, dtype=torch.bool).triu(1)
        self.index = torch.arange(seq_len)
        self.rotation = None
        if not gpt2:
            width = m["dim"] // m["heads"]
            angles = torch.outer(self.index, 10000 ** (-torch.arange(0, width, 2) / width))
            self.rotation = angles.cos(), angles.sin()

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions(self.index)
        for block in self.blocks:
            x = block(x, self.hidden_keys, self.rotation)
        logits = self.norm(x) @ self.tokens.weight.t()  # the head is tied
        return functional.cross_entropy(logits.view(-1, self.vocab), targets.reshape(-1))


def blas_core():
    """Which kernels the BLAS behind PyTorch chose, when it is an OpenBLAS."""
    try:
        name = ctypes.CDLL("libblas.so.3").openblas_get_corename
    except (OSError, AttributeError):
        return "not an OpenBLAS"
    name.restype = ctypes.c_char_p
    return name().decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=MODELS, default="gpt2_124m")
    parser.add_argument("--micro-batch", type=int, default=4)
    parser.add_argument("--seq-len", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--set-to-none", action="store_true", help="free gradients after each step")
    parser.add_argument("--foreach", action="store_true", help="AdamW over lists of tensors")
    a = parser.parse_args()
    if a.seq_len > MODELS[a.model].get("positions", a.seq_len):
        sys.exit(f"--seq-len {a.seq_len}: {a.model} has {MODELS[a.model]['positions']} positions")

    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    model = Decoder(MODELS[a.model], a.seq_len)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, foreach=a.foreach)
    generator = torch.Generator().manual_seed(1)
    times = []
    for step in range(a.warmup + a.steps):
        data = torch.randint(0, model.vocab, (a.micro_batch, a.seq_len + 1), generator=generator)
        marks = [time.perf_counter()]
        loss = model(data[:, :-1], data[:, 1:])
        marks.append(time.perf_counter())
        loss.backward()
        marks.append(time.perf_counter())
        optimizer.step()
        optimizer.zero_grad(set_to_none=a.set_to_none)
        marks.append(time.perf_counter())
        if step >= a.warmup:
            times.append([marks[3] - marks[0]] + [marks[i + 1] - marks[i] for i in range(3)])

    total, forward, backward, update = (
        1e3 * statistics.median(t[i] for t in times) for i in range(4))
    print(json.dumps({
        "model": a.model, "parameters": sum(p.numel() for p in model.parameters()),
        "micro_batch": a.micro_batch, "seq_len": a.seq_len, "threads": a.threads,
        "ms": round(total, 2), "best_ms": round(1e3 * min(t[0] for t in times), 2),
        "forward_ms": round(forward, 2), "backward_ms": round(backward, 2),
        "optimizer_ms": round(update, 2),
        "tokens_per_s": round(a.micro_batch * a.seq_len / total * 1e3, 1),
        "loss": round(loss.item(), 4),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "torch": torch.__version__, "blas_core": blas_core()}), flush=True)


if __name__ == "__main__":
    main()
