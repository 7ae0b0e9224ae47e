import Sample.RingB
