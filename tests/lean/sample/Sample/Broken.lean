import Sample.Basic

theorem Sample.broken : Sample.Even 3 := rfl
