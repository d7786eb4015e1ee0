"""What a tokenizer makes of the texts it is given."""
