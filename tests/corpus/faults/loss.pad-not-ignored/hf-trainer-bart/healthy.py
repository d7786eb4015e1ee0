"""Tiny BART from scratch: rewrite a sequence with every word replaced by its partner."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BartConfig, BartForConditionalGeneration, Trainer, TrainingArguments, set_seed

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2
FIRST, VOCAB = 3, 27


class PartnerDataset(Dataset):
    def __init__(self, size, seed):
        partner = np.random.default_rng(1234).permutation(np.arange(FIRST, VOCAB))
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(size):
            source = rng.integers(FIRST, VOCAB, size=rng.integers(6, 13))
            target = partner[source - FIRST]
            self.rows.append((source.tolist() + [EOS_ID], target.tolist() + [EOS_ID]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        source, target = self.rows[i]
        return {"source": source, "target": target}


class PairCollator:
    def __call__(self, examples):
        input_ids = self.pad([e["source"] for e in examples], PAD_ID)
        attention_mask = input_ids.ne(PAD_ID).long()
        labels = self.pad([e["target"] for e in examples], -100)
        return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}

    @staticmethod
    def pad(sequences, value):
        width = max(len(s) for s in sequences)
        return torch.tensor([s + [value] * (width - len(s)) for s in sequences])


def build_model():
    config = BartConfig(
        vocab_size=VOCAB,
        d_model=48,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        max_position_embeddings=16,
        init_std=0.06,
        dropout=0.0,
        pad_token_id=PAD_ID,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=BOS_ID,
        forced_eos_token_id=EOS_ID,
    )
    return BartForConditionalGeneration(config)


if __name__ == "__main__":
    set_seed(29)
    training_args = TrainingArguments(
        output_dir="bart-run",
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        max_steps=90,
        learning_rate=3e-3,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=10,
        max_grad_norm=1.0,
        logging_steps=15,
        eval_strategy="steps",
        eval_steps=45,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=29,
    )
    trainer = Trainer(
        model=build_model(),
        args=training_args,
        train_dataset=PartnerDataset(1440, seed=3),
        eval_dataset=PartnerDataset(128, seed=4),
        data_collator=PairCollator(),
    )
    trainer.train()
