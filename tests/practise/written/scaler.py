def standardize(train, test):
    mean, spread = train.mean(0), train.std(0)
    spread[spread == 0] = 1
    scaled = {"train": (train - mean) / spread, "test": (test - mean) / spread}
    return {"mean": mean, "spread": spread, **scaled}
