"""One file per framework that Sawbones meets, through its public API only."""
