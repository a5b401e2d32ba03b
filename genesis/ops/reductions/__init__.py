"""Operations along dimensions: reductions, running reductions, sorts and searches."""
