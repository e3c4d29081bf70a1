"""A Llama decoder small enough to train on one core: RMSNorm, rotary positions, SwiGLU, tied embeddings."""

import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {"width": 128, "blocks": 4, "heads": 4, "ff": 384, "vocabulary": 1536, "theta": 10000.0, "eps": 1e-5, "context": 1024}


def rotary(positions, head, theta):
    """cos and sin of shape [..., head] in the half-rotated layout of Hugging Face's Llama."""
    inverse = theta ** (-torch.arange(0, head, 2, dtype=torch.float32) / head)
    angle = positions[..., None].float() * inverse
    angle = torch.cat([angle, angle], -1)
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, f = c["width"], c["ff"]
        self.heads, self.head = c["heads"], d // c["heads"]
        self.input_layernorm = Norm(d, c["eps"])
        self.post_attention_layernorm = Norm(d, c["eps"])
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.o_proj = nn.Linear(d, d, bias=False)
        self.gate_up = nn.Linear(d, 2 * f, bias=False)
        self.down_proj = nn.Linear(f, d, bias=False)

    def split(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.input_layernorm(x)).split(x.shape[-1], -1)
        return [t.view(batch, length, self.heads, self.head).transpose(1, 2) for t in (q, k, v)]

    def join(self, x, attended):
        x = x + self.o_proj(attended.transpose(1, 2).reshape(x.shape))
        gate, up = self.gate_up(self.post_attention_layernorm(x)).chunk(2, -1)
        return x + self.down_proj(F.silu(gate) * up)

    def forward(self, x, cos, sin):
        q, k, v = self.split(x)
        attended = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        return self.join(x, attended)


class Llama(nn.Module):
    def __init__(self, c=CONFIG):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c["vocabulary"], c["width"])
        self.blocks = nn.ModuleList([Block(c) for _ in range(c["blocks"])])
        self.norm = Norm(c["width"], c["eps"])
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02 if parameter is self.embed.weight else parameter.shape[1] ** -0.5)
        for block in self.blocks:
            nn.init.zeros_(block.o_proj.weight)
            nn.init.zeros_(block.down_proj.weight)

    def states(self, ids):
        """ids [B, T] → output of every block, before the final norm."""
        cos, sin = rotary(torch.arange(ids.shape[1]), self.c["width"] // self.c["heads"], self.c["theta"])
        x = self.embed(ids)
        out = []
        for block in self.blocks:
            x = block(x, cos, sin)
            out.append(x)
        return out

    def logits(self, x):
        return self.norm(x) @ self.embed.weight.T


class Cache:
    """Decodes many sequences of unequal length side by side, one token each per step."""

    def __init__(self, model, batch, context):
        c = model.c
        self.model, self.head = model, c["width"] // c["heads"]
        self.keys = torch.zeros(c["blocks"], batch, c["heads"], context, self.head)
        self.values = torch.zeros_like(self.keys)

    @torch.no_grad()
    def step(self, rows, tokens, positions):
        """rows, tokens, positions [n] → states per block [blocks, n, width]."""
        cos, sin = rotary(positions, self.head, self.model.c["theta"])
        cos, sin = cos[:, None, None], sin[:, None, None]
        x = self.model.embed(tokens)[:, None]
        longest = int(positions.max()) + 1
        mask = (torch.arange(longest)[None] <= positions[:, None])[:, None, None]
        out = []
        for i, block in enumerate(self.model.blocks):
            q, k, v = block.split(x)
            self.keys[i, rows, :, positions] = rotate(k, cos, sin)[:, :, 0]
            self.values[i, rows, :, positions] = v[:, :, 0]
            attended = F.scaled_dot_product_attention(
                rotate(q, cos, sin), self.keys[i, rows, :, :longest], self.values[i, rows, :, :longest], attn_mask=mask)
            x = block.join(x, attended)
            out.append(x[:, 0])
        return torch.stack(out)
