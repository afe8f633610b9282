#!/usr/bin/env python3
"""Make the demo model: a small Llama-shaped model of the King James Bible.

From the text in Debian's bible-kjv-text package (read through the `bible` command of bible-kjv)
this program trains a byte-level BPE tokenizer and a 4.7 M parameter model, and writes five files
that transformers.LlamaForCausalLM.from_pretrained loads:

    config.json  generation_config.json  model.safetensors  tokenizer.json  tokenizer_config.json

How the files beside this program were made (two cores that other work was using too, so that
only 4.29 epochs fitted; an epoch is 1,103,441 tokens):

    command    make_demo_model.py --epochs 14 --minutes 59
    seed       1611
    versions   Python 3.11.7, torch 2.15.0, transformers 5.24.0 (only to check the result),
               tokenizers 0.23.3, safetensors 0.8.0, numpy 2.4.6; bible-kjv and -text 4.38
    training   1,158 steps, 4,734,464 tokens, 4.29 epochs; loss with dropout in the last pass: 2.840
               nats/token
    losses     2.942 nats/token, 1.143 bits/byte over every 20th chapter of the training text;
               3.137 nats/token, 1.254 bits/byte over the 24 held-out chapters

That run was started with --minutes 42, raised to 59 in its third epoch, and waiting threads were
told to sleep instead of spin from then on. As --minutes makes the schedule follow the clock, the
command gives a like model, not the same bits. Without --minutes the schedule follows the text
alone; at the 5,000 tokens/s measured while the two cores (AMX bfloat16) were nearly idle, an epoch
takes about 4 minutes. The held-out loss was still falling at the end: more epochs would make the
model better, from the beginning or, with --start, from the shipped files.
"""

import argparse
import json
import math
import os
import random
import re
import subprocess
import time
from pathlib import Path

# Threads that wait sleep instead of spinning: far faster where other work shares the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch  # noqa: E402 (after the setting above, which is read when torch is loaded)
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from tokenizers import trainers
from torch import nn

BOS, EOS = "<|begin_of_text|>", "<|end_of_text|>"
BOS_ID, EOS_ID = 0, 1

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": BOS_ID,
    "eos_token_id": EOS_ID,
    "head_dim": 32,
    "hidden_act": "silu",
    "hidden_size": 256,
    "initializer_range": 0.02,
    "intermediate_size": 640,
    "max_position_embeddings": 2048,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 8,
    "num_hidden_layers": 6,
    "num_key_value_heads": 4,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 2048,
}

# --------------------------------------------------------------------------------------------
# Text


def read_chapters():
    """The whole text as a list of (chapter name, [verse, ...]) in the order of the books."""
    dump = subprocess.run(
        ["bible", "-f", "gen1:1-rev22:21"], check=True, capture_output=True, text=True
    ).stdout
    chapters = []
    for line in dump.splitlines():
        match = re.fullmatch(r"(\d?[A-Za-z]+\d+):(\d+) +(.*)", line.rstrip())
        if not match:
            raise SystemExit(f"unexpected line from `bible`: {line!r}")
        chapter, verse = match[1], match[3]
        if not chapters or chapters[-1][0] != chapter:
            chapters.append((chapter, []))
        chapters[-1][1].append(verse)
    return chapters


# --------------------------------------------------------------------------------------------
# Tokenizer

# How Llama 3 splits a text before the byte-pair merges.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train_tokenizer(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG["vocab_size"],
        special_tokens=[AddedToken(t, special=True, normalized=False) for t in (BOS, EOS)],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    assert tokenizer.token_to_id(BOS) == BOS_ID and tokenizer.token_to_id(EOS) == EOS_ID
    assert tokenizer.get_vocab_size() == CONFIG["vocab_size"]
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=f"{BOS} $A",
                pair=f"{BOS} $A {BOS} $B:1",
                special_tokens=[(BOS, BOS_ID)],
            ),
        ]
    )
    return tokenizer


def encode_chapters(tokenizer, chapters):
    """Per chapter: its ids with BOS in front and EOS at the end, and where each verse starts."""
    encoded = []
    for _, verses in chapters:
        text = "\n".join(verses)
        encoding = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(encoding.ids) == text
        # A verse starts at the first token whose first character is the verse's first one.
        first_char = {start: i for i, (start, _) in reversed(list(enumerate(encoding.offsets)))}
        starts, at = [], 0
        for verse in verses:
            starts.append(first_char[at] + 1)  # + 1: BOS
            at += len(verse) + 1
        encoded.append(([BOS_ID, *encoding.ids, EOS_ID], starts))
    return encoded


# --------------------------------------------------------------------------------------------
# Model: Llama, with the parameter names that transformers uses


def causal_attention(q, k, v, block=128):
    """A block of queries at a time over the keys it sees: on CPUs, when training, faster than
    F.scaled_dot_product_attention. k comes transposed."""
    parts = []
    for begin in range(0, q.shape[2], block):
        end = min(begin + block, q.shape[2])
        scores = torch.matmul(q[:, :, begin:end], k[..., :end])
        future = torch.ones(end - begin, end, dtype=torch.bool).triu(begin + 1)
        parts.append(torch.matmul(scores.masked_fill(future, -math.inf).softmax(-1), v[:, :, :end]))
    return torch.cat(parts, dim=2)


class Dropout(nn.Module):
    """Dropout with one mask for all positions of a window (random numbers are slow on CPUs)."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        keep = torch.empty(x.shape[0], 1, x.shape[2]).bernoulli_(1 - self.p) / (1 - self.p)
        return x * keep.to(x.dtype)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.dim = (
            c["num_attention_heads"],
            c["num_key_value_heads"],
            c["head_dim"],
        )
        width = c["hidden_size"]
        self.q_proj = nn.Linear(width, self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(width, self.kv_heads * self.dim, bias=False)
        self.v_proj = nn.Linear(width, self.kv_heads * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, width, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape

        def split(y, heads):
            return y.view(batch, length, heads, self.dim).transpose(1, 2)

        def rotate(y):
            a, b = y.chunk(2, dim=-1)
            return (y * cos + torch.cat((-b, a), dim=-1) * sin).to(y.dtype)

        q = rotate(split(self.q_proj(x), self.heads))
        k = rotate(split(self.k_proj(x), self.kv_heads))
        v = split(self.v_proj(x), self.kv_heads)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        y = causal_attention(q * self.dim**-0.5, k.transpose(2, 3), v)
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, self.heads * self.dim))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c, dropout):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(c["hidden_size"], eps=c["rms_norm_eps"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = nn.RMSNorm(c["hidden_size"], eps=c["rms_norm_eps"])
        self.mlp = Mlp(c)
        self.dropout = Dropout(dropout)

    def forward(self, x, cos, sin):
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), cos, sin))
        return x + self.dropout(self.mlp(self.post_attention_layernorm(x)))


class Llama(nn.Module):
    def __init__(self, c, dropout=0.0):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.model.layers = nn.ModuleList(
            Layer(c, dropout) for _ in range(c["num_hidden_layers"])
        )
        self.model.norm = nn.RMSNorm(c["hidden_size"], eps=c["rms_norm_eps"])
        self.dropout = Dropout(dropout)
        dim, positions = c["head_dim"], torch.arange(c["max_position_embeddings"])
        frequencies = c["rope_theta"] ** (-torch.arange(0, dim, 2) / dim)
        angles = torch.outer(positions, frequencies).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                std = c["initializer_range"]
                if name.endswith(("o_proj.weight", "down_proj.weight")):
                    std /= math.sqrt(2 * c["num_hidden_layers"])
                nn.init.normal_(p, std=std)

    def forward(self, ids):
        x = self.dropout(self.model.embed_tokens(ids))
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return F.linear(self.model.norm(x), self.model.embed_tokens.weight)  # tied


# --------------------------------------------------------------------------------------------
# Training

# The length of a training window, and how much of the training is done when it starts to be used.
LENGTHS = ((0.0, 256), (0.55, 512), (0.88, 1024))


def epoch_windows(encoded, length, rng):
    """One pass over the text as windows of length + 1 ids.

    A window starts at a verse, with BOS in front of it even in the middle of a chapter, for that
    is how a prompt starts; it runs on through the chapters that follow. Each epoch cuts the text
    at other places.
    """
    stream, starts = [], []
    for ids, verse_starts in encoded:
        starts.extend(len(stream) + s for s in verse_starts)
        stream.extend(ids)
    stream += stream[: length + 1]  # the last window runs on into the first chapter
    total = len(stream) - (length + 1)
    windows, at, i = [], rng.randrange(length) - length, 0
    while at < total:
        while i + 1 < len(starts) and starts[i + 1] <= at:
            i += 1
        first = starts[i]  # the last verse that starts at or before `at`
        windows.append([BOS_ID, *stream[first : first + length]])
        at += length
    rng.shuffle(windows)
    return windows


def cross_entropy(model, ids):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")


@torch.no_grad()
def evaluate(model, encoded, chapters, dtype):
    """Loss of whole chapters, each from its own BOS: (nats/token, bits/byte)."""
    model.eval()
    nats = tokens = 0
    limit = CONFIG["max_position_embeddings"]
    for ids, _ in encoded:
        for i in range(0, len(ids) - 1, limit):  # only Psalm 119 needs more than one piece
            piece = torch.tensor([ids[i : i + limit + 1]])
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                nats += cross_entropy(model, piece).sum().item()
            tokens += piece.shape[1] - 1
    model.train()
    size = sum(len("\n".join(verses).encode()) for _, verses in chapters)
    return nats / tokens, nats / math.log(2) / size


def export(model, tokenizer, folder):
    """Write the five files, each under another name first."""
    folder.mkdir(parents=True, exist_ok=True)

    def replace(name, write):
        temporary = folder / f".{name}.tmp"
        write(temporary)
        os.chmod(temporary, 0o644)
        temporary.replace(folder / name)

    def write_json(value):
        return lambda path: path.write_text(json.dumps(value, indent=2) + "\n")

    weights = {k: v.detach().to(torch.bfloat16).contiguous() for k, v in model.state_dict().items()}
    replace("model.safetensors", lambda p: save_file(weights, p, metadata={"format": "pt"}))
    replace("tokenizer.json", lambda p: tokenizer.save(str(p)))
    replace("config.json", write_json(CONFIG))
    replace(
        "generation_config.json",
        write_json(
            {
                "bos_token_id": BOS_ID,
                "eos_token_id": EOS_ID,
                "do_sample": True,
                "temperature": 0.8,
                "top_p": 0.95,
            }
        ),
    )
    added = {
        "lstrip": False,
        "normalized": False,
        "rstrip": False,
        "single_word": False,
        "special": True,
    }
    replace(
        "tokenizer_config.json",
        write_json(
            {
                "added_tokens_decoder": {
                    str(BOS_ID): {"content": BOS, **added},
                    str(EOS_ID): {"content": EOS, **added},
                },
                "bos_token": BOS,
                "clean_up_tokenization_spaces": False,
                "eos_token": EOS,
                "model_input_names": ["input_ids", "attention_mask"],
                "model_max_length": CONFIG["max_position_embeddings"],
                "tokenizer_class": "PreTrainedTokenizerFast",
            }
        ),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--start", type=Path, help="train on from the weights in this folder")
    parser.add_argument("--epochs", type=float, default=12, help="passes over the text")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end by then at the latest")
    parser.add_argument("--seed", type=int, default=1611)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4096, help="tokens a step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--float32", action="store_true", help="train without bfloat16 autocast")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    dtype = torch.float32 if args.float32 else torch.bfloat16

    chapters = read_chapters()
    held_out = set(rng.sample(range(len(chapters)), round(0.02 * len(chapters))))
    train = [c for i, c in enumerate(chapters) if i not in held_out]
    valid = [c for i, c in enumerate(chapters) if i in held_out]
    tokenizer = train_tokenizer("\n".join(verses) for _, verses in train)
    train_ids, valid_ids = encode_chapters(tokenizer, train), encode_chapters(tokenizer, valid)
    train_tokens = sum(len(ids) for ids, _ in train_ids)
    print(
        f"{len(train)} chapters, {train_tokens} tokens to train on; {len(valid)} chapters,"
        f" {sum(len(ids) for ids, _ in valid_ids)} tokens held out:",
        *(name for name, _ in valid),
    )

    model = Llama(CONFIG, args.dropout)
    if args.start:
        if tokenizer.to_str() != Tokenizer.from_file(str(args.start / "tokenizer.json")).to_str():
            parser.error("--start: the tokenizer there is another one (another --seed?)")
        model.load_state_dict(load_file(args.start / "model.safetensors"))
    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": args.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=args.lr,
        betas=(0.9, 0.95),
        fused=True,
    )

    begin, tokens, step, progress, epoch = time.monotonic(), 0, 0, 0.0, 0
    while progress < 1:
        length = max(n for start, n in LENGTHS if start <= progress)
        windows = epoch_windows(train_ids, length, rng)
        losses = []
        for i in range(0, len(windows), args.batch // length):
            batch = torch.tensor(windows[i : i + args.batch // length])
            # The schedule follows the text read or the time spent, whichever is further on.
            minutes = (time.monotonic() - begin) / 60
            progress = max(tokens / (args.epochs * train_tokens), minutes / args.minutes)
            if progress >= 1:
                break
            warm_up = min(1.0, (step + 1) / 100)
            cosine = 0.02 + 0.98 * (1 + math.cos(math.pi * progress)) / 2
            for group in optimizer.param_groups:
                group["lr"] = args.lr * warm_up * cosine
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                loss = cross_entropy(model, batch).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            tokens += batch[:, 1:].numel()
            losses.append(loss.item())
            if step % 20 == 0:
                rate = tokens / (time.monotonic() - begin)
                print(
                    f"step {step} {minutes:.1f} min {progress:.3f} done, loss"
                    f" {sum(losses[-20:]) / len(losses[-20:]):.3f}, {rate:.0f} tokens/s",
                    flush=True,
                )
        epoch += 1
        if losses:
            nats, bits = evaluate(model, valid_ids, valid, dtype)
            print(
                f"epoch {epoch} (windows of {length}): training loss"
                f" {sum(losses) / len(losses):.4f} nats/token,"
                f" held out {nats:.4f} nats/token, {bits:.4f} bits/byte",
                flush=True,
            )
            export(model, tokenizer, args.out)

    # The losses of the weights as they are shipped: rounded to bfloat16, computed in float32.
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.to(torch.bfloat16))
    sample = slice(0, None, 20)
    for what, ids, text in (
        ("every 20th of the training", train_ids[sample], train[sample]),
        ("held-out", valid_ids, valid),
    ):
        nats, bits = evaluate(model, ids, text, torch.float32)
        print(f"{what} chapters: {nats:.4f} nats/token, {bits:.4f} bits/byte")
    minutes = (time.monotonic() - begin) / 60
    print(f"{step} steps, {tokens} tokens, {tokens / train_tokens:.2f} epochs, {minutes:.1f} min")


if __name__ == "__main__":
    main()
