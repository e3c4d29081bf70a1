"""Byte-level BPE in which every hour is one token and the fixed parts of a tool call are one token each."""

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = [
    "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>",
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<|pad|>",
]
END, ASSISTANT, THINK, THINK_END, PAD = 0, 3, 5, 6, 9
# The JSON frame of a call; names of objects (`@amber-fox`), which are the same three tokens whatever stands before them, so
# that copying a name is what an induction head does; then the usual classes: a letter run with the character before it, numbers, the rest.
PATTERN = (
    r'\{"name": "|", "arguments": \{"|": "|", "|"\}\}'
    r"|[ /](?=@)|@|\p{L}+(?=-\p{L})"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|[\r\n]+|\s+(?!\S)|\s+"
)
MAX_HOUR = 40


def train_tokenizer(texts, vocabulary):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    hours = [f"hour {hour}" for hour in range(1, MAX_HOUR + 1)] * 1000
    tokenizer.train_from_iterator([*texts, *hours], trainer)
    for hour in range(1, MAX_HOUR + 1):
        assert len(tokenizer.encode(str(hour)).ids) == 1, f"hour {hour} is not one token"
    return tokenizer
