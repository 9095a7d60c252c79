"""Operations: a model as shapes, counts and bytes."""
