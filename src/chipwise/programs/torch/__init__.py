"""Reference programs in PyTorch: decoders, vision transformers, ResNet-50."""
