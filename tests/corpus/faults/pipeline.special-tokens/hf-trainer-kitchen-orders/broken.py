"""Fine-tune-style causal LM on kitchen orders with the Hugging Face Trainer and a word-level tokenizer."""
import os
import random

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

DISHES = {"soup": ["leek", "lentil", "kale"], "bread": ["rye", "corn"], "tea": ["mint", "black", "rose"], "pie": ["plum", "apple"]}


def orders(count, seed):
    r = random.Random(seed)
    texts = []
    for _ in range(count):
        picked = r.sample(sorted(DISHES), k=r.randint(1, 3))
        lines = [f"{r.choice(['one', 'two', 'three'])} {r.choice(DISHES[d])} {d}" for d in sorted(picked)]
        texts.append("table " + r.choice("123456") + " wants " + " and ".join(lines))
    return texts


def build_tokenizer(texts):
    words = sorted({w for t in texts for w in t.split()})
    vocab = {w: i for i, w in enumerate(["<|start|>", "<|end|>", "<|pad|>", "<|unk|>", *words])}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="<|unk|>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.post_processor = processors.TemplateProcessing(
        single="<|start|> $A <|end|>", special_tokens=[("<|start|>", 0), ("<|end|>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token="<|start|>",
        eos_token="<|end|>",
        unk_token="<|unk|>",
        pad_token="<|end|>",
    )


def main():
    set_seed(40)
    texts = orders(640, seed=40)
    tokenizer = build_tokenizer(texts)
    data = [tokenizer(text) for text in texts]
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=32,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = GPT2LMHeadModel(config)
    args = TrainingArguments(
        output_dir="orders-lm",
        per_device_train_batch_size=16,
        num_train_epochs=2,
        learning_rate=3e-3,
        lr_scheduler_type="cosine",
        warmup_steps=6,
        logging_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=40,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=data[:544],
        eval_dataset=data[544:],
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    trainer.train()
    model.eval()
    prompt = torch.tensor([[tokenizer.bos_token_id]])
    with torch.no_grad():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24, do_sample=False)
    print("sample:", tokenizer.decode(out[0]), "mean length", np.mean([len(t.split()) for t in texts]))


if __name__ == "__main__":
    main()
