#!/usr/bin/env python3
"""Makes tests/golden/tokenizer: small tokenizers, and what the references say of them.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
    venv/bin/python tests/golden/make_tokenizer_fixtures.py

Needs the Debian package bible-kjv for its text (public domain). Each folder holds a tokenizer and
expected.json: for each text of texts.json the ids without special tokens, and the decoded text
where it differs from the text itself (null: the same). "before" and "after" are the special tokens
around. With the argument "demo", only what the demo model's tokenizer says is made anew: after
config/demo/tokenizer.json was.
"""

import collections
import io
import json
import pathlib
import shutil
import subprocess
import sys

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "tokenizer"
DEMO = HERE.parent.parent / "config" / "demo"

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

SCRIPTS = """
Привет, мир! Как дела? Быстрая бурая лиса прыгает через ленивую собаку.
Γειά σου Κόσμε. Η γρήγορη καφέ αλεπού. ὦ ἄνδρες Ἀθηναῖοι
你好,世界。天地玄黃,宇宙洪荒。日月盈昃,辰宿列張。 こんにちは世界。カタカナとひらがな 안녕하세요 세계
שלום עולם. مرحبا بالعالم. नमस्ते दुनिया। สวัสดีชาวโลก வணக்கம் ქართული Հայերեն አማርኛ ខ្មែរ བོད
Größe, naïve façade, Ærøskøbing, İstanbul, Straße, smørrebrød, coöperate, žluťoučký kůň, Ωμέγα
😀 😂 🎉 👍🏽 👩‍👩‍👧‍👦 🇩🇪 🏳️‍🌈 ❤️ ☃ ✈️ 🤷🏿‍♂️ 🧑‍🚀 ①②③ Ⅷ ½ ² ٣ ५ 𝒳𝓎 𐍈 ﬁ Å
"""

CODE = """
def merge(left, right):\n    while left or right:\n\t\tyield min(left[0], right[0])\n    return None
#include <vector>\nint main(int argc, char** argv) { for (int i = 0; i < argc; ++i) puts(argv[i]); }
{"key": [1, 2.5e-3, null, true], "name": "x_y-z"}\nSELECT * FROM t WHERE a >= 10 AND b != 'c';
"""

SINGLE = [
    "", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "a", "A", ".", "'", "0", "é",
    "e\u0301",
    "\u00a0", "\u2003", "\u3000", "\u180e", "a\u180eb", "\u180e \u180e", " \u180e", "\u200b",
    "\ufeff",
    "\u2028x\u2029y", "\x85", "a\x85b", "\x00", "a\x00b", "\x1c", "\x7f", "\ufffd", "\U0010ffff",
    "\ue000",
    "Hello", " Hello", "Hello ", " Hello ", "  Hello  ", "Hello world", "Hello  world",
    "Hello   world",
    "Hello\nworld", "Hello \n world", "Hello\r\n\r\nworld", "Hello\n\n\n  world\t\tagain  \n",
    "hello world", "HELLO WORLD", "Hello, world!", "Hello,world!Again...", "(a) [b] {c} <d>",
    "don't", "I'll we've they're he's I'm you'd can't", "DON'T I'LL WE'VE THEY'RE HE'S I'M YOU'D",
    "'s 't 're", "it's's", "'S'T", "l'été d'où qu'il", "rock 'n' roll", "\u2019s it\u2019s",
    "'\u017f",
    "1", "12", "123", "1234", "12345678901234567890", "3.14159", "1,234,567.89", "-5", "1e-9",
    "0x1F",
    "v1.2.3", "2024-01-31T23:59:59Z", "10%", "$9.99", "٣٤٥", "१२३", "①②③", "½", "x²", "Ⅷ", "a1b2c3",
    "\u2581", "\u2581a", "a\u2581b", "\u2581\u2581", " \u2581 ", "<0x41>", "<0x0A>", "<unk>",
    "<pad>",
    "<s>", "</s>", "<s>Hello</s>", "<s> Hello </s> ", "Hello<s>world", "a <s> b", "<s><s>", "<s",
    "s>",
    "<|begin_of_text|>", "<|end_of_text|>", "<|begin_of_text|>Hello<|end_of_text|>", "<|begin",
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", "<|im_start|>", "  <|im_end|>  x",
    "<tool>", "a<tool>b", "a <tool> b", "a  <tool>  b", "<tool><tool>", "<Tool>", "word",
    "aword words",
    "a word b", "word-word", "password word", "keyword", "KEYWORD", "Straße word", "wordé",
    "foo@example.com", "https://example.com/a?b=c&d=%20#e", "C:\\dir\\file.txt", "~/.config",
    "a_b__c",
    "if (x == 1) { return y; }", "    indented", "\tindented", "        eight", "x  =  1;",
    "/* c */ // d",
    "a\n    b\n        c\n", "<html><body>text</body></html>", "```python\nprint('hi')\n```",
    "#!/bin/sh",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abababababababab", "the the the the", "thethethe",
    "=" * 50,
    " " * 17, "\n" * 9, "\t" * 5, "a" + " " * 20 + "b", "!?!?!?", "......", "---", "\u2014",
    "\u2026",
    "😀", "😀😀", " 😀", "😀 a", "a😀b", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "🏳️‍🌈", "❤️", "1️⃣", "🤷🏿‍♂️ ok",
    "日本語", "日本語テキスト", "你好 世界", "中文。标点,", "한국어 텍스트", "漢字かな交じり文です。", "𠀀𠀁",
    "Привет", "привет мир", "ПРИВЕТ", "Γειά σου", "ὦ ἄνδρες", "שלום", "مرحبا", "नमस्ते", "สวัสดี",
    "ខ្មែរ",
    "Größe Straße", "naïve façade", "coo\u0308perate", "A\u030a", "\u212b", "\u2126", "ﬁne ﬂow",
    "①", "ｆｕｌｌ",
    "İstanbul", "ıI", "ß", "ΑΣ", "e\u0301\u0323", "\u0301", " \u0301a", "q\u0307\u0323",
    "\u1100\u1161\u11a8", "각",
    "𝒳 𝓎 𐍈", "\u0915\u094d\u0937", "z\u0335\u0322a\u0334lgo\u0337", "\u202eabc\u202c", "a\u200db",
    "a\u200cb",
    "mixed кириллица and 漢字 and عربي and हिन्दी 123 😀!", "tab\tand\nnewline\rand\fform\vfeed",
    "A very long sentence, with commas; semicolons: colons -- dashes (and more) \"quotes\" etc.",
    "trailing newline\n", "trailing spaces   ", "\nleading newline",
    "CamelCaseIdentifier snake_case_name",
]


def verses(chapters):
    run = subprocess.run(["bible", "-f", chapters], capture_output=True, text=True, check=True)
    return [line.split(" ", 1)[1] for line in run.stdout.splitlines() if " " in line]


def texts():
    lines = [line for line in (SCRIPTS + CODE).splitlines() if line.strip()]
    return SINGLE + lines + verses("ps23:1-ps23:6") + ["\n".join(verses("mt6:9-mt6:13"))]


def corpus():
    lines = SCRIPTS.splitlines() + CODE.splitlines()
    return verses("gen1:1-gen30:43") + verses("jn1:1-jn8:59") + lines * 12


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text.encode("utf-8", "replace").decode() + "\n", encoding="utf-8")


def write_expected(name, samples, encode, decode, before, after):
    """decode(ids, skip_special): the reference's text."""
    ids = [encode(text) for text in samples]
    skipped, shown = [], []
    for text, found in zip(samples, ids):
        whole = before + found + after
        for skip, out in ((True, skipped), (False, shown)):
            decoded = decode(whole, skip)
            out.append(None if decoded == text else decoded)
    write_json(OUT / name / "expected.json",
               {"before": before, "after": after, "ids": ids, "skipped": skipped, "shown": shown})


def expect_hugging_face(name, tokenizer, samples):
    plain = tokenizer.encode("x", add_special_tokens=False).ids
    whole = tokenizer.encode("x", add_special_tokens=True).ids
    at = next(i for i in range(len(whole)) if whole[i:i + len(plain)] == plain)
    before, after = whole[:at], whole[at + len(plain):]
    for text in samples:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text, add_special_tokens=True).ids == before + ids + after, text
    write_expected(name, samples,
                   lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
                   lambda ids, skip: tokenizer.decode(ids, skip_special_tokens=skip),
                   before, after)


def save(name, tokenizer, samples, merges_as_strings=False, config=None):
    value = json.loads(tokenizer.to_str())
    if merges_as_strings:
        value["model"]["merges"] = [" ".join(pair) for pair in value["model"]["merges"]]
    write_json(OUT / name / "tokenizer.json", value)
    if config:
        write_json(OUT / name / "tokenizer_config.json", config)
    expect_hugging_face(name, tokenizer, samples)


def train_byte_level(pre_tokenizer, size, specials, normalizer=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def make_byte_level(samples):
    gpt2 = train_byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), 480,
                            ["<|endoftext|>"])
    gpt2.post_processor = processors.ByteLevel(trim_offsets=False)
    save("gpt2_pairs", gpt2, samples)
    save("gpt2_strings", gpt2, samples, merges_as_strings=True)
    gpt2.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    save("gpt2_prefix_space", gpt2, samples)

    split = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    llama3 = train_byte_level(split, 600, [], ignore_merges=True)
    llama3.add_special_tokens([AddedToken(f"<|{name}|>", normalized=False, special=True)
                               for name in ("begin_of_text", "end_of_text", "eot_id")])
    llama3.add_tokens([AddedToken("<tool>", lstrip=True, rstrip=True),
                       AddedToken("word", single_word=True), AddedToken("café", normalized=False)])
    bos = llama3.token_to_id("<|begin_of_text|>")
    llama3.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A",
                                      special_tokens=[("<|begin_of_text|>", bos)])])
    eot = {"__type": "AddedToken", "content": "<|eot_id|>", "lstrip": False, "normalized": False,
           "rstrip": False, "single_word": False, "special": True}
    save("llama3", llama3, samples, config={"bos_token": "<|begin_of_text|>", "eos_token": eot})

    qwen = train_byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        560, [], normalizers.NFC())
    qwen.add_special_tokens([AddedToken(f"<|{name}|>", normalized=False, special=True)
                             for name in ("endoftext", "im_start", "im_end")])
    qwen.add_tokens([AddedToken("<tool>", rstrip=True, normalized=False),
                     AddedToken("coo\u0308perate", normalized=True)])
    save("qwen2", qwen, samples, merges_as_strings=True,
         config={"bos_token": None, "eos_token": "<|im_end|>", "add_bos_token": False})


def make_sentencepiece(samples):
    def train(kind, **options):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus()), model_writer=model, model_type=kind, minloglevel=2,
            num_threads=1, **options)
        return model.getvalue()

    def expect(name, model):
        (OUT / name).mkdir(parents=True, exist_ok=True)
        (OUT / name / "tokenizer.model").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        # Control pieces in a text are Troupe's affair, as in transformers: not asked here.
        plain = [text for text in samples
                 if not any(mark in text for mark in ("<s>", "</s>", "\x00"))]
        write_json(OUT / name / "texts.json", plain)
        write_expected(name, plain, processor.encode,
                       lambda ids, skip: processor.decode(ids) if skip else None,
                       [processor.bos_id()], [])
        return processor

    bpe = train("bpe", vocab_size=560, byte_fallback=True, remove_extra_whitespaces=False,
                normalization_rule_name="identity", character_coverage=0.98,
                allow_whitespace_only_pieces=True, split_digits=True)
    processor = expect("sentencepiece_bpe", bpe)
    expect("sentencepiece_unigram", train("unigram", vocab_size=360, character_coverage=0.98,
                                          normalization_rule_name="identity"))
    make_converted(processor, samples)


def make_converted(processor, samples):
    """The same BPE as tokenizer.json, in the spelling of Llama 2 and in the newer one."""
    count = processor.get_piece_size()
    vocab = {processor.id_to_piece(i): i for i in range(count)}
    merges = []
    for piece, index in vocab.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocab and right in vocab and not processor.is_byte(index):
                merges.append((processor.get_score(index), vocab[left], vocab[right], left, right))
    merges.sort(key=lambda merge: (-merge[0], merge[1], merge[2]))

    def base():
        tokenizer = Tokenizer(models.BPE(vocab, [merge[3:] for merge in merges], unk_token="<unk>",
                                         fuse_unk=True, byte_fallback=True))
        tokenizer.add_special_tokens([AddedToken(piece, normalized=False, special=True)
                                      for piece in ("<unk>", "<s>", "</s>")])
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", vocab["<s>"])])
        tokenizer.decoder = decoders.Sequence([
            decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
            decoders.Strip(content=" ", left=1)])
        return tokenizer

    config = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True,
              "add_eos_token": False, "tokenizer_class": "LlamaTokenizer"}
    old = base()
    old.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"),
                                           normalizers.Replace(" ", "\u2581")])
    save("llama2_old", old, samples, merges_as_strings=True, config=config)
    new = base()
    new.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="first",
                                                 split=False)
    new.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", vocab["<s>"]), ("</s>", vocab["</s>"])])
    save("llama2_new", new, samples, config={**config, "add_eos_token": True})


def learn(tokenizer, size, prefix="", suffix=""):
    """Plain BPE with marks. The library's trainer numbers marked characters in an order that
    differs from run to run, and so orders equally frequent merges; here ties go to the first pair
    in the alphabet."""
    counts = collections.Counter()
    for line in corpus():
        if max(line, default=" ") < "\u0400":
            normal = tokenizer.normalizer.normalize_str(line)
            counts.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal))
    words = {}
    for word, count in counts.items():
        marked = [(prefix if at else "") + letter for at, letter in enumerate(word)]
        marked[-1] += suffix
        words[tuple(marked)] = words.get(tuple(marked), 0) + count
    pieces = ["<unk>", "<pad>"] + sorted({piece for word in words for piece in word})
    merges = []
    while len(pieces) < size:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        left, right = min(pairs, key=lambda pair: (-pairs[pair], pair))
        joined = left + right.removeprefix(prefix)
        merges.append((left, right))
        if joined not in pieces:
            pieces.append(joined)
        words = {join(word, left, right, joined): count for word, count in words.items()}
    return {"vocab": {piece: index for index, piece in enumerate(pieces)}, "merges": merges}


def join(word, left, right, joined):
    out = []
    for piece in word:
        if out and out[-1] == left and piece == right:
            out[-1] = joined
        else:
            out.append(piece)
    return tuple(out)


def make_others(samples):
    words = Tokenizer(models.BPE())
    words.normalizer = normalizers.Sequence([
        normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip(),
        normalizers.Replace(Regex(r"\s{2,}"), " ")])
    words.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Punctuation("merged_with_previous"),
        pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")])
    words.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    words.model = models.BPE(**learn(words, 320), unk_token="<unk>", fuse_unk=False)
    words.add_special_tokens(["<unk>", "<pad>"])
    save("metaspace_words", words, samples)

    clip = Tokenizer(models.BPE())
    clip.normalizer = normalizers.NFD()
    clip.pre_tokenizer = pre_tokenizers.Whitespace()
    clip.model = models.BPE(**learn(clip, 360, suffix="</w>"), unk_token="<unk>", fuse_unk=True,
                            end_of_word_suffix="</w>")
    clip.add_special_tokens(["<unk>", "<pad>"])
    save("word_suffix", clip, samples)

    cuts = Tokenizer(models.BPE())
    cuts.normalizer = normalizers.NFKD()
    cuts.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(" ", "merged_with_next"),
        pre_tokenizers.Split(Regex(r"[aeiou]+"), "merged_with_previous"),
        pre_tokenizers.Split(Regex(r"[^\s]"), "contiguous"),
        pre_tokenizers.Split(Regex(r"[\p{L}\s]+"), "removed", invert=True),
        pre_tokenizers.Digits(individual_digits=False)])
    cuts.decoder = decoders.Sequence([
        decoders.Strip(content="#", left=2), decoders.Replace(Regex("[e]"), "\u00e9"),
        decoders.Fuse()])
    cuts.model = models.BPE(**learn(cuts, 360, prefix="##"), unk_token="<unk>",
                            continuing_subword_prefix="##")
    cuts.add_special_tokens(["<unk>", "<pad>"])
    save("split_behaviors", cuts, samples)


def make_demo():
    tokenizer = Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    samples = texts()[::3] + verses("rev1:1-rev4:11") + verses("eccl1:1-eccl3:22")
    write_json(OUT / "demo" / "texts.json", samples)
    expect_hugging_face("demo", tokenizer, samples)


def main():
    if sys.argv[1:] == ["demo"]:
        return make_demo()
    shutil.rmtree(OUT, ignore_errors=True)
    samples = texts()
    write_json(OUT / "texts.json", samples)
    make_byte_level(samples)
    make_sentencepiece(samples)
    make_others(samples)
    make_demo()
    total = sum(path.stat().st_size for path in OUT.rglob("*") if path.is_file())
    print(f"{len(samples)} texts, {total / 1000:.0f} kB in {OUT}")


if __name__ == "__main__":
    main()
